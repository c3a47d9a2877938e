// Engines on other hosts. The host of an engine connects to the server's address for engines and sends the
// engine's index. Then it starts the engine's process, which uses this connection instead of a socket pair.
//
// The connection has no encryption and no authentication: use a private network.
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
  std::string address = "127.0.0.1";  // address of the server's host
  int port = 29'550;
  // Text about the model and its computation. The server rejects an engine with another identity.
  std::string identity{};
};

// Server side. Any thread.
class EngineMeeting {
 public:
  // Accepts engines with these indices. Returns invalid_argument or io.
  static Result<std::shared_ptr<EngineMeeting>> open(EngineMeetingOptions options, std::set<int> engines);

  // Returns the engine's connection, or nullopt if it has not arrived or is closed.
  std::optional<Socket> take(int engine);

 private:
  EngineMeeting(EngineMeetingOptions options, std::set<int> engines, Socket listener);
  void greet(const Socket& listener);

  const EngineMeetingOptions options_;
  const std::set<int> engines_;
  std::mutex mutex_;
  std::map<int, Socket> came_;  // connections that have arrived, by engine; guarded by mutex_
  std::jthread thread_;
};

// Runs `program` with the arguments `command` as engine `engine` of the server until `stop`, and restarts it
// when it ends. It is called on the engine's host. The process finds its connection to the server at
// kServerSocket. Returns an error if the server rejects the engine, or if the engine repeatedly ends right
// after its start.
inline constexpr int kServerSocket = 4;  // kChildSocket + 1
Result<> run_engine_of_host(const EngineMeetingOptions& server, int engine,
                            const std::vector<std::string>& command, const std::stop_token& stop,
                            const std::string& program = "/proc/self/exe");

}  // namespace octavo::remote
