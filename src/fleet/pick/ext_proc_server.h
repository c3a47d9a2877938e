// ext_proc and its health service over gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "fleet/pick/processor.h"

namespace octavo::fleet {

// TLS of the first port.
struct GrpcTls {
  std::string folder = {};  // with tls.crt and tls.key (PEM); "": a certificate that signs itself
  bool refresh = false;     // read them again when they change
};

struct GrpcOptions {
  std::string host = "0.0.0.0";
  std::uint16_t port = 9002;         // 0: any free one
  std::uint16_t health_port = 9003;  // grpc.health.v1, which the first port answers, too; without TLS
  std::optional<GrpcTls> tls = {};   // nothing: none
  // 0: enough for the largest request body, which a gateway may send in one message.
  std::uint64_t message_bytes_max = 0;
};

class ExtProcServer {
 public:
  // `context` outlives the server. Errors: an address that cannot be bound, certificates that cannot be used.
  static Result<std::unique_ptr<ExtProcServer>> start(const GrpcOptions& options, ProcessorContext& context);
  ~ExtProcServer();

  std::uint16_t port() const;
  std::uint16_t health_port() const;
  // Sets the result of health checks, except "liveness"; initially true.
  void set_ready(bool ready);
  // Tells health checks to go elsewhere; streams that are open get up to grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit ExtProcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
