// `octavo route`: an HTTP server in front of many replicas.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "fleet/route/router_options.h"

namespace octavo::fleet {

class Router {
 public:
  // Errors: a wrong URL, an unknown policy, an address that cannot be bound; the field says which.
  static Result<std::unique_ptr<Router>> start(RouterOptions options);
  ~Router();

  std::uint16_t port() const;
  std::string address() const;
  // Answers in flight get up to grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Router(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
