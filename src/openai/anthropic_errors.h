// Errors in Anthropic's format: {"type": "error", "error": {"type", "message"}}.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace octavo::anthropic {

boost::json::object error_object(int status, std::string_view message);
std::string error_json(int status, std::string_view message);
std::string error_json(const Error& error);
http::Response error_response(const Error& error);

}  // namespace octavo::anthropic
