// Errors in Cohere's format: {"message": ".."}.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace octavo::cohere {

std::string error_json(std::string_view message);
http::Response error_response(const Error& error);

}  // namespace octavo::cohere
