// Errors in Ollama's format: {"error": "message"}.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace octavo::ollama {

std::string error_json(std::string_view message);
std::string error_json(const Error& error);
http::Response error_response(const Error& error);

}  // namespace octavo::ollama
