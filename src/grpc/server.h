// gRPC server on event loops (HTTP/2 by nghttp2): bidirectional streams, TLS, graceful shutdown. No
// compression and no deadlines: clients cancel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "grpc/call.h"
#include "http/server_tls.h"

namespace octavo::grpc {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                     // 0: any free port
  std::string field = "port";                 // field of errors about the port
  std::shared_ptr<http::ServerTls> tls = {};  // null: no TLS
  std::size_t message_bytes_max = 4 << 20;    // larger messages are refused
  int threads = 1;                            // number of event loops, over which connections are distributed
};

class Server {
 public:
  // Errors: the address is not available.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Methods methods);
  ~Server();  // calls stop(0)

  std::uint16_t port() const;
  // Refuses new connections and calls, waits at most `grace_ms` for open calls, then closes them. A second
  // call has no effect.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::grpc
