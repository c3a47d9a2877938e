// `octavo route`: an HTTP server that forwards each request to one of many workers.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "fleet/route/router_options.h"

namespace octavo::fleet {

class Router {
 public:
  // Returns an error on the option if a URL is invalid, a policy is unknown, or an address is not
  // available.
  static Result<std::unique_ptr<Router>> start(RouterOptions options, const BatchOptions& batch_options = {});
  ~Router();

  std::uint16_t port() const;
  std::string address() const;
  // Stops after running answers have ended, but at most after grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Router(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
