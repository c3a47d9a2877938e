// Starts a child process that is connected to its parent by a socket and ends when the parent ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "remote/frame_socket.h"

namespace octavo::remote {

// Descriptor of the socket in the child.
inline constexpr int kChildSocket = 3;
// Descriptor in the child of the memory in which EngineProcess keeps KV blocks across restarts.
inline constexpr int kKeptMemory = kChildSocket + 1;

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // calls kill()

  // Runs `program` with these arguments. The child gets the descriptors 0, 1, 2, its socket (kChildSocket)
  // and `shared` (from kChildSocket + 1 on). All signals are unblocked in the child. Returns io after a
  // system error.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::string& program = "/proc/self/exe",
                                    std::span<const int> shared = {});

  // Returns a process that runs on another host, at the other end of this connection. The process ends when
  // the connection closes.
  static ChildProcess of_another_host(FrameSocket connection);

  // Closes the socket, waits at most grace_ms until the child exits, and then kills it.
  void stop(int grace_ms);
  // Kills the child and returns how it ended, for an error message.
  std::string kill();

  FrameSocket socket;
  pid_t pid() const { return pid_; }  // -1: another host

 private:
  pid_t pid_ = -1;
};

// Limits restarts: a process that dies soon after each start is not restarted forever.
class Restarts {
 public:
  // maximum number of processes in a row that die within 10 s after their start
  static constexpr int kYoungDeathsMax = 5;

  // Call it when the process has ended. began_us: time of its start. Returns false if the process should
  // not be restarted.
  bool again(std::int64_t began_us);

 private:
  int young_deaths_ = 0;
};

// The child calls this function first. From then on the child ends when its parent ends. The child ignores
// signals that a terminal or service manager sends to the whole process group, because the parent handles
// them.
void follow_parent();

}  // namespace octavo::remote
