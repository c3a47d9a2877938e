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
// Descriptor of the memory of an EngineProcess that outlives the child.
inline constexpr int kKeptMemory = kChildSocket + 1;

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kill()

  // Runs `program` with these arguments. The child gets only the descriptors 0, 1, 2, its end of the socket
  // and, from kChildSocket + 1 on, the descriptors `shared`. It blocks no signals. Returns io after a system
  // error.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::string& program = "/proc/self/exe",
                                    std::span<const int> shared = {});

  // Returns a process on another host, at the other end of this connection. It ends when the connection is
  // closed.
  static ChildProcess of_another_host(FrameSocket connection);

  // Closes the child's socket, waits at most grace_ms for its end, then kills it.
  void stop(int grace_ms);
  // Kills the child immediately. Returns a description of how it ended.
  std::string kill();

  FrameSocket socket;
  pid_t pid() const { return pid_; }  // -1: the process is on another host

 private:
  pid_t pid_ = -1;
};

// Limits the restarts of a process. After a long life of the process, the count restarts at 0.
class Restarts {
 public:
  static constexpr int kYoungDeathsMax = 5;  // maximum number of consecutive deaths in the first 10 s of a
                                             // process

  // Called when a process has ended; began_us is the time of its start. Returns false if the process should
  // not be restarted, because too many have died young in a row.
  bool again(std::int64_t began_us);

 private:
  int young_deaths_ = 0;
};

// Called first in the child. From then on, the child ends when its parent ends. It ignores the signals that a
// terminal or a service manager sends to the whole process group; the parent handles them.
void follow_parent();

}  // namespace octavo::remote
