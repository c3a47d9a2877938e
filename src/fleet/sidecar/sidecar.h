// `octavo sidecar`: proxy beside a decode worker (llm-d's routing sidecar). If a request has the header
// x-prefiller-host-port, the proxy sends its prompt to that prefill worker first.
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
