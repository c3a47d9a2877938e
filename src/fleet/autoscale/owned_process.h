// A program that runs beside this one, and is ended by it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace octavo::fleet {

class OwnedProcess {
 public:
  // Runs one program as a shell reads it: quotes and variables, its words from then on. It gets a process
  // group of its own, so that a terminal's Ctrl-C does not reach it. Errors: io.
  static Result<OwnedProcess> start(const std::string& command);
  OwnedProcess(OwnedProcess&& other) noexcept;
  OwnedProcess& operator=(OwnedProcess&& other) noexcept;
  ~OwnedProcess();  // kill()

  // False from the moment on when it has ended.
  bool running();
  // How it has ended, in words; of one that has.
  std::string fate() const;
  bool succeeded() const { return ended_ && status_ == 0; }

  void terminate();  // SIGTERM
  void kill();       // its whole group, at once

 private:
  OwnedProcess() = default;

  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace octavo::fleet
