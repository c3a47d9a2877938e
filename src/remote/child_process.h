// A program that is started with one end of a socket, and does not outlive its starter.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "remote/frame_socket.h"

namespace octavo::remote {

// The descriptor that a child finds its end of the socket at.
inline constexpr int kChildSocket = 3;

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kill()

  // Runs this program again, with these arguments. Of the descriptors open here the child gets 0, 1, 2, its end
  // of the socket and, from kChildSocket + 1 on, those of `shared`; no signal is blocked in it. Errors: io.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::string& program = "/proc/self/exe",
                                    std::span<const int> shared = {});

  // One that runs elsewhere, at the other end of this connection: to end it is to close that.
  static ChildProcess of_another_host(FrameSocket connection);

  // Gives it some time to end by itself once its socket is closed, then ends it.
  void stop(int grace_ms);
  // Ends it at once. Returns what became of it, in words.
  std::string kill();

  FrameSocket socket;
  pid_t pid() const { return pid_; }  // -1: none here

 private:
  pid_t pid_ = -1;
};

// For who starts a process again whenever it has ended: whether it may still get on. One that lives long begins to
// count anew.
class Restarts {
 public:
  static constexpr int kYoungDeathsMax = 5;  // that long is 10 s

  // Of the last one, which has just ended, when it was started: false, so many young ones have died in a row.
  bool again(std::int64_t began_us);

 private:
  int young_deaths_ = 0;
};

// To be called first by such a child: it ends when its starter does, and not by the signals with which a
// terminal or a service manager asks the whole group to end. Its starter sees to that.
void follow_parent();

}  // namespace octavo::remote
