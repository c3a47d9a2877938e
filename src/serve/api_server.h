// The OpenAI-compatible server: routes, keys, and the way from a body to a generation.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "http/server.h"
#include "serve/service.h"

namespace octavo {

class ApiServer {
 public:
  // Serves from now on. `http.refusal` and `http.admit` are set here. Errors: io, when the address cannot be
  // bound.
  static Result<std::unique_ptr<ApiServer>> start(std::shared_ptr<Service> service, http::ServerOptions http);
  ~ApiServer();

  std::uint16_t port() const { return server_->port(); }

  // Takes no new requests, lets answers in flight end for up to grace_ms, cuts the rest (which aborts them in
  // the engine) and waits for the engine to confirm. The engine must still be running.
  void stop(int grace_ms);

 private:
  ApiServer(std::shared_ptr<Service> service, std::unique_ptr<http::Server> server);

  std::shared_ptr<Service> service_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo
