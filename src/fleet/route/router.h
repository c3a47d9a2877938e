// `octavo route`: an HTTP server that forwards requests to many replicas.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "fleet/route/router_options.h"

namespace octavo::fleet {

class Router {
 public:
  // Errors name the field: an invalid URL, an unknown policy, an address that is not available.
  static Result<std::unique_ptr<Router>> start(RouterOptions options, const BatchOptions& batch_options = {});
  ~Router();

  std::uint16_t port() const;
  std::string address() const;
  // Running answers may continue for grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Router(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
