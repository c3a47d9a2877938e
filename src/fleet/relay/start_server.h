// Starts the HTTP servers of router and sidecar.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "http/async_client.h"
#include "http/server.h"

namespace octavo::fleet {

// Calls http::Server::start(), whose errors name the flags of `octavo serve`. Errors of this function name
// the flags of router and sidecar.
inline Result<std::unique_ptr<http::Server>> start_server(http::ServerOptions options, http::Handler handler,
                                                          http::AsyncClient& client) {
  constexpr std::pair<std::string_view, std::string_view> kFlags[] = {{"ssl-certfile", "tls-cert-path"},
                                                                      {"ssl-keyfile", "tls-key-path"}};
  auto server = http::Server::start(std::move(options), std::move(handler), client);
  if (!server)
    for (const auto& [field, flag] : kFlags)
      if (server.error().field == field) server.error().field = flag;
  return server;
}

}  // namespace octavo::fleet
