// A child process. It is started with one end of a socket, and ends when its parent ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "remote/frame_socket.h"

namespace octavo::remote {

// Descriptor of the child's end of the socket.
inline constexpr int kChildSocket = 3;

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kill()

  // Runs this program with these arguments. The child gets only the descriptors 0, 1, 2, its end of the
  // socket and, from kChildSocket + 1 on, the descriptors `shared`. It blocks no signals. Errors: io.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::string& program = "/proc/self/exe",
                                    std::span<const int> shared = {});

  // A process on another host, at the other end of this connection. It ends when the connection is closed.
  static ChildProcess of_another_host(FrameSocket connection);

  // Closes its socket and waits at most grace_ms for its end, then kills it.
  void stop(int grace_ms);
  // Kills it at once. Returns a description of how it ended.
  std::string kill();

  FrameSocket socket;
  pid_t pid() const { return pid_; }  // -1: no process on this host

 private:
  pid_t pid_ = -1;
};

// Limits the restarts of a process. When a process has lived long, the count starts again at 0.
class Restarts {
 public:
  static constexpr int kYoungDeathsMax = 5;  // a process is young for its first 10 s

  // Call when a process has ended; began_us is the time of its start. False: do not restart it, too many
  // young processes have died in a row.
  bool again(std::int64_t began_us);

 private:
  int young_deaths_ = 0;
};

// The child must call this first. From then on the child ends when its parent ends. It ignores the signals
// that a terminal or a service manager sends to the whole process group; the parent handles them.
void follow_parent();

}  // namespace octavo::remote
