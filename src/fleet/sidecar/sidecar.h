// `octavo sidecar`: a proxy beside a decode worker (llm-d's routing sidecar). The request header
// x-prefiller-host-port names a prefill worker, to which the proxy first sends the prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "fleet/sidecar/sidecar_options.h"

namespace octavo::fleet {

class Sidecar {
 public:
  // Errors name the field: an invalid URL, an unknown connector, an address that is not available.
  static Result<std::unique_ptr<Sidecar>> start(SidecarOptions options);
  ~Sidecar();

  std::uint16_t port() const;
  std::string address() const;
  // Running answers may continue for grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Sidecar(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
