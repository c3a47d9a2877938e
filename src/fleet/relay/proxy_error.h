// Writes errors of the router and the sidecar in the format of the request's API.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace octavo::fleet {

http::Response proxy_error(std::string_view path, int status, std::string_view message,
                           std::string_view param = {});
http::Response proxy_error(std::string_view path, const Error& error);

std::string proxy_error_event(std::string_view path, int status, std::string_view message,
                              std::string_view param = {});

}  // namespace octavo::fleet
