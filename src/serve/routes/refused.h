// Routes of vLLM that this server does not support, with the reasons that clients receive.
#pragma once

#include <span>
#include <string_view>

namespace octavo::routes {

struct RefusedRoute {
  std::string_view path;
  std::string_view reason;
};

std::span<const RefusedRoute> refused_routes();

}  // namespace octavo::routes
