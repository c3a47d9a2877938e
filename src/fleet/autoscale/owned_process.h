// A child process that ends when this process ends.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace octavo::fleet {

class OwnedProcess {
 public:
  // Runs a shell command line in a separate process group, so that Ctrl-C in a terminal does not reach it.
  // Returns an `io` error if the process cannot start.
  static Result<OwnedProcess> start(const std::string& command);
  OwnedProcess(OwnedProcess&& other) noexcept;
  OwnedProcess& operator=(OwnedProcess&& other) noexcept;
  ~OwnedProcess();  // kills the process

  bool running();
  // Returns how the process has ended, as text with its exit status or signal.
  std::string fate() const;
  bool succeeded() const { return ended_ && status_ == 0; }

  void terminate();  // sends SIGTERM
  void kill();

 private:
  OwnedProcess() = default;

  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace octavo::fleet
