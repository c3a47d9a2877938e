// Errors as Ollama's clients expect them: {"error": "message"}.
#pragma once

#include <string>

#include "base/error.h"
#include "http/message.h"

namespace octavo::ollama {

std::string error_json(const Error& error);
http::Response error_response(const Error& error);

}  // namespace octavo::ollama
