// Sends stored files as responses.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "batches/host.h"
#include "http/exchange.h"

namespace octavo::batches {

// Sends the file in pieces, at the speed of the client's connection. Returns an io error if the file cannot
// be opened. Then it has sent no response.
Result<> send_file(const HostPtr& host, const std::shared_ptr<http::Exchange>& exchange,
                   const std::string& path, std::string content_type);

}  // namespace octavo::batches
