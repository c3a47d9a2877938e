// `octavo sidecar`: a proxy beside a decode engine, like llm-d's routing sidecar. If the request header
// x-prefiller-host-port names a prefill engine, the proxy lets that engine compute the prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "fleet/sidecar/sidecar_options.h"

namespace octavo::fleet {

class Sidecar {
 public:
  // Returns an error on the option if a URL is invalid, a connector is unknown, or an address is not
  // available.
  static Result<std::unique_ptr<Sidecar>> start(SidecarOptions options);
  ~Sidecar();

  std::uint16_t port() const;
  std::string address() const;
  // Stops after running answers have ended, but at most after grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Sidecar(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
