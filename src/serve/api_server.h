// The OpenAI-compatible server. It checks API keys and calls the handlers of the routes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/server.h"
#include "serve/api_handler.h"

namespace octavo {

class ApiServer {
 public:
  // Listens on the address in `http`. Until open() is called, requests get 503. Overwrites `http.refusal` and
  // `http.admit`. Returns an io error if the server cannot listen.
  static Result<std::unique_ptr<ApiServer>> start(const std::vector<std::string>& api_keys,
                                                  http::ServerOptions http);
  ~ApiServer();

  void open(std::shared_ptr<Service> service);
  void open(std::shared_ptr<ApiHandler> handler);

  std::uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }

  // Refuses new requests and waits up to grace_ms until the running answers end. Then ends the remaining
  // answers with an error. Returns when the engine has confirmed that they ended, so the engine must still be
  // running.
  void stop(int grace_ms);

 private:
  struct Door;
  ApiServer(std::shared_ptr<Door> door, std::unique_ptr<http::Server> server);

  std::shared_ptr<Door> door_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo
