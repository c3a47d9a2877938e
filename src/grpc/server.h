// gRPC server on event loops, with nghttp2: bidirectional streams, TLS, graceful shutdown. It has no
// compression and ignores deadlines, because clients cancel calls.
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
  std::string field = "port";                 // name that errors about the port use for it
  std::shared_ptr<http::ServerTls> tls = {};  // null: no TLS
  // larger messages are rejected
  std::size_t message_bytes_max = 4 << 20;
  int threads = 1;  // event loops; connections are distributed over them
};

class Server {
 public:
  // Returns an error if the address is not available.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Methods methods);
  ~Server();  // calls stop(0)

  std::uint16_t port() const;
  // Rejects new connections and calls, waits at most `grace_ms` for open calls, and closes the connections.
  // A second call does nothing.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::grpc
