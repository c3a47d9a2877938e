// Errors in OpenAI's format: {"error": {"message", "type", "param", "code"}}. With status 404, `detail`
// follows `error`, as in vLLM for routes that the model does not have.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace octavo::openai {

int status_of(ErrorCode code);

// An empty `param` becomes null. The type is vLLM's name for the status, such as "BadRequestError".
std::string error_json(int status, std::string_view message, std::string_view param = {});

http::Response error_response(int status, std::string_view message, std::string_view param = {});
// The message is "FIELD: MESSAGE", from error.field and error.message. Sets Retry-After if a retry can
// succeed.
http::Response error_response(const Error& error);
std::string error_json(const Error& error);

}  // namespace octavo::openai
