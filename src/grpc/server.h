// A gRPC server on event loops (HTTP/2 by nghttp2): streams of messages both ways, TLS, an orderly end. No
// compression, no deadlines: who calls gives up by cancelling.
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
  std::uint16_t port = 0;                     // 0: any free one
  std::string field = "port";                 // of what is wrong with it
  std::shared_ptr<http::ServerTls> tls = {};  // null: none
  std::size_t message_bytes_max = 4 << 20;    // longer ones are refused
  int threads = 1;                            // connections are shared out over them
};

class Server {
 public:
  // Errors: an address that cannot be bound.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Methods methods);
  ~Server();  // stop(0)

  std::uint16_t port() const;
  // Takes no more connections and calls; waits up to `ms` for those that are open, then cuts them off.
  // Calling it again does nothing.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::grpc
