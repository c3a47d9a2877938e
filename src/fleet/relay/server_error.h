// Errors of http::Server with the names of the flags of router and sidecar.
#pragma once

#include <string_view>
#include <utility>

#include "base/error.h"

namespace octavo::fleet {

// `error` names the flags of `octavo serve`.
inline Error server_error(Error error) {
  constexpr std::pair<std::string_view, std::string_view> kFlags[] = {{"ssl-certfile", "tls-cert-path"},
                                                                      {"ssl-keyfile", "tls-key-path"}};
  for (const auto& [field, flag] : kFlags)
    if (error.field == field) return {error.code, std::move(error.message), std::string(flag)};
  return error;
}

}  // namespace octavo::fleet
