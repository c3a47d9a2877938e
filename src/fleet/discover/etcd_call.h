// Calls etcd through its JSON gateway (v3).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {

Result<http::Client> etcd_connect(const http::Url& url, int timeout_ms = 10'000);

// Sends a POST to `path` and returns the body of the response. Returns an `io` error if the status is not
// 200.
Result<std::string> etcd_call(http::Client& client, std::string_view path, std::string body);

}  // namespace octavo::fleet
