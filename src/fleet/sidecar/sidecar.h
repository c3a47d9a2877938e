// `octavo sidecar`: a proxy beside a decode worker (llm-d's routing sidecar). If a request has the header
// x-prefiller-host-port, the proxy first sends its prompt to that prefill worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "fleet/sidecar/sidecar_options.h"

namespace octavo::fleet {

class Sidecar {
 public:
  // Errors: an invalid URL, an unknown connector, or it cannot listen at the address; the error names the
  // field.
  static Result<std::unique_ptr<Sidecar>> start(SidecarOptions options);
  ~Sidecar();

  std::uint16_t port() const;
  std::string address() const;
  // Running answers may continue for up to grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Sidecar(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
