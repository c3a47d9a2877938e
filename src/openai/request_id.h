// Ids by which clients, logs and traces name a request.
#pragma once

#include <string>

#include "http/message.h"

namespace octavo::openai {

// The X-Request-Id, up to 256 bytes. Empty if it is missing or not plain ASCII, because it is written to
// answers, logs and traces.
std::string request_id_of(const http::Headers& headers);

}  // namespace octavo::openai
