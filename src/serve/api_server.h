// The OpenAI-compatible server: routes, keys, and requests from body to generation.
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
  // Starts to listen and answers 503 until open() is called. Sets `http.refusal` and `http.admit`. Error: io
  // if the address cannot be bound.
  static Result<std::unique_ptr<ApiServer>> start(const std::vector<std::string>& api_keys,
                                                  http::ServerOptions http);
  ~ApiServer();

  // Starts to serve requests.
  void open(std::shared_ptr<Service> service);

  std::uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }

  // Takes no new requests, waits up to grace_ms for answers in flight, ends the rest with an error to
  // their clients, and waits for the engine to confirm. The engine must still be running.
  void stop(int grace_ms);

 private:
  struct Door;
  ApiServer(std::shared_ptr<Door> door, std::unique_ptr<http::Server> server);

  std::shared_ptr<Door> door_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo
