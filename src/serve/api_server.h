// The OpenAI-compatible server: handles routes, API keys, and requests up to the start of a generation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/server.h"
#include "serve/service.h"

namespace octavo {

class ApiServer {
 public:
  // Starts to listen. Until open() is called, requests get 503. Sets `http.refusal` and `http.admit`. Error:
  // io if it cannot listen on the address.
  static Result<std::unique_ptr<ApiServer>> start(const std::vector<std::string>& api_keys,
                                                  http::ServerOptions http);
  ~ApiServer();

  void open(std::shared_ptr<Service> service);

  std::uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }

  // Refuses new requests and waits up to grace_ms for running answers. Then ends the others with an error to
  // their clients, and waits until the engine has confirmed. The engine must still be running.
  void stop(int grace_ms);

 private:
  struct Door;
  ApiServer(std::shared_ptr<Door> door, std::unique_ptr<http::Server> server);

  std::shared_ptr<Door> door_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo
