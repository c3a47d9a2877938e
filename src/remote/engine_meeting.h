// Connects a server with engines on other hosts. The host of an engine connects to the server and sends the
// index of the engine. Then it starts the engine's process, which uses this connection in place of a socket
// pair. The connection has no encryption and no authentication, so it needs a private network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/tcp_socket.h"

namespace octavo::remote {

struct EngineMeetingOptions {
  std::string address = "127.0.0.1";  // the server's address
  int port = 29'550;
  // Describes the model and how it is computed. The server rejects engines with a different identity.
  std::string identity{};
};

// Server side. Any thread may call the functions.
class EngineMeeting {
 public:
  // engines: indices of the engines to accept. Returns invalid_argument or io.
  static Result<std::shared_ptr<EngineMeeting>> open(EngineMeetingOptions options, std::set<int> engines);

  // Returns the engine's connection, or nullopt if the engine is not connected.
  std::optional<Socket> take(int engine);

 private:
  EngineMeeting(EngineMeetingOptions options, std::set<int> engines, Socket listener);
  void greet(const Socket& listener);

  const EngineMeetingOptions options_;
  const std::set<int> engines_;
  std::mutex mutex_;
  // connections that take() has not returned, by engine index; guarded by mutex_
  std::map<int, Socket> sockets_;
  std::jthread thread_;
};

// Called on the engine's host. Runs `program` with the arguments `command` as engine `engine` of the
// server, and restarts it until `stop`. The program finds its connection to the server at kServerSocket.
// Returns an error if the server rejects the engine, or if the program dies too often right after its
// start.
inline constexpr int kServerSocket = 4;  // kChildSocket + 1
Result<> run_engine_of_host(const EngineMeetingOptions& server, int engine,
                            const std::vector<std::string>& command, const std::stop_token& stop,
                            const std::string& program = "/proc/self/exe");

}  // namespace octavo::remote
