// A child process that is started with one end of a socket and ends when its parent ends.
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
  // socket and, from kChildSocket + 1 on, those of `shared`. No signal is blocked in it. Errors: io.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::string& program = "/proc/self/exe",
                                    std::span<const int> shared = {});

  // A process on another host, at the other end of this connection. The process ends when the connection is
  // closed.
  static ChildProcess of_another_host(FrameSocket connection);

  // Closes its socket and waits up to grace_ms for its end, then kills it.
  void stop(int grace_ms);
  // Kills it at once. Returns a description of how it ended.
  std::string kill();

  FrameSocket socket;
  pid_t pid() const { return pid_; }  // -1: no process on this host

 private:
  pid_t pid_ = -1;
};

// Restart limit for a process that is restarted after each death. A process that lives long resets the count.
class Restarts {
 public:
  static constexpr int kYoungDeathsMax = 5;  // a process is young for 10 s

  // Call when a process has ended. began_us: its start. False: too many young processes have died in a row.
  bool again(std::int64_t began_us);

 private:
  int young_deaths_ = 0;
};

// The child calls this first. It then ends when its parent ends, and ignores the signals with which a
// terminal or a service manager ends the whole group; the parent handles those.
void follow_parent();

}  // namespace octavo::remote
