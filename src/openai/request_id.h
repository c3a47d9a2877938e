// Reads the request id that the client sends. Responses, logs and traces contain this id.
#pragma once

#include <string>

#include "http/message.h"

namespace octavo::openai {

// Returns the first 256 bytes of the X-Request-Id header, or "" if the header is missing or not plain ASCII.
std::string request_id_of(const http::Headers& headers);

}  // namespace octavo::openai
