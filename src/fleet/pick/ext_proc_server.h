// gRPC server for Envoy's ext_proc protocol, with a health service. It makes a Processor for each HTTP
// request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "fleet/pick/processor.h"

namespace octavo::fleet {

struct GrpcTls {
  std::string folder = {};  // folder with tls.crt and tls.key in PEM format; "": a self-signed certificate
  bool refresh = false;     // read the files again after changes
};

struct GrpcOptions {
  std::string host = "0.0.0.0";
  std::uint16_t port = 9002;         // 0: any free port
  std::uint16_t health_port = 9003;  // serves grpc.health.v1 without TLS; the main port also serves it
  std::optional<GrpcTls> tls = {};   // nullopt: no TLS
  // Maximum size of a message. 0: the size of the largest request body plus headers, because a body may be
  // one message.
  std::uint64_t message_bytes_max = 0;
};

class ExtProcServer {
 public:
  // `context` must outlive the server. Returns an error if an address is not available, or if certificates
  // are invalid.
  static Result<std::unique_ptr<ExtProcServer>> start(const GrpcOptions& options, ProcessorContext& context);
  ~ExtProcServer();

  std::uint16_t port() const;
  std::uint16_t health_port() const;
  // Sets the result of all health checks except "liveness". The result is true at the start.
  void set_ready(bool ready);
  // Fails health checks, and ends streams that run for more than grace_ms.
  void stop(int grace_ms);

 private:
  struct State;
  explicit ExtProcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
