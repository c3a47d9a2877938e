// `octavo sidecar`: stands beside an engine that decodes and has another one compute the prompt first, where
// the request's x-prefiller-host-port says so (llm-d's routing sidecar).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "fleet/sidecar/sidecar_options.h"

namespace octavo::fleet {

class Sidecar {
 public:
  // Errors: a wrong URL, an unknown connector, an address that cannot be bound; the field says which.
  static Result<std::unique_ptr<Sidecar>> start(SidecarOptions options);
  ~Sidecar();

  std::uint16_t port() const;
  std::string address() const;
  // Answers in flight get up to grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Sidecar(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
