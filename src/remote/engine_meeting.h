// Engines of other hosts, and how they come to the server that they belong to: the host of an engine connects
// to the server's meeting, says which engine it is, and starts its process with that connection in place of a
// socket pair.
//
// Nothing is encrypted or authenticated: a network of one's own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/tcp_socket.h"

namespace octavo::remote {

struct EngineMeetingOptions {
  std::string address = "127.0.0.1";  // of the server's host
  int port = 29'550;
  // Engines of another text do not belong to the server: what is computed, and how.
  std::string identity{};
};

// The server's side. Any thread.
class EngineMeeting {
 public:
  // For engines [first, first + count). Errors: invalid_argument, io.
  static Result<std::shared_ptr<EngineMeeting>> open(EngineMeetingOptions options, int first, int count);

  // The connection of that engine, if it has come since it was last taken, and is still there.
  std::optional<Socket> take(int engine);

 private:
  EngineMeeting(EngineMeetingOptions options, int first, int count, Socket listener);
  void greet(const Socket& listener);

  const EngineMeetingOptions options_;
  const int first_, count_;
  std::mutex mutex_;
  std::map<int, Socket> came_;  // by engine; under mutex_
  std::jthread thread_;
};

// The side of an engine's host: runs `program` with the arguments `command` as engine `engine` for the
// server, whose connection it finds at kServerSocket, and again when it has ended; until `stop`. Errors: the
// engine does not belong there; it ends again and again before it could have done anything.
inline constexpr int kServerSocket = 4;  // kChildSocket + 1
Result<> run_engine_of_host(const EngineMeetingOptions& server, int engine,
                            const std::vector<std::string>& command, const std::stop_token& stop,
                            const std::string& program = "/proc/self/exe");

}  // namespace octavo::remote
