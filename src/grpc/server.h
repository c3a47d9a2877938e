// A gRPC server on event loops (HTTP/2 by nghttp2): bidirectional streams, TLS, graceful shutdown. No
// compression and no deadlines: a client gives up by cancelling.
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
  std::string field = "port";                 // field name in errors about the port
  std::shared_ptr<http::ServerTls> tls = {};  // null: plain TCP
  std::size_t message_bytes_max = 4 << 20;    // longer messages are refused
  int threads = 1;                            // number of event loops; connections are distributed over them
};

class Server {
 public:
  // Errors: the address cannot be bound.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Methods methods);
  ~Server();  // calls stop(0)

  std::uint16_t port() const;
  // Refuses new connections and calls, waits up to `grace_ms` for open calls, then closes them. A second call
  // has no effect.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::grpc
