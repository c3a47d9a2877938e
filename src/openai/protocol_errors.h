// Formats errors for the client's protocol.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"
#include "openai/routes.h"

namespace octavo::openai {

http::Response error_response_in(Protocol protocol, const Error& error);
// `param` is the name of the invalid field, for protocols that report the field.
std::string error_json_in(Protocol protocol, int status, std::string_view message,
                          std::string_view param = {});

}  // namespace octavo::openai
