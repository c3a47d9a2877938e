#include "fleet/autoscale/owned_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace octavo::fleet {

Result<OwnedProcess> OwnedProcess::start(const std::string& command) {
  OwnedProcess process;
  std::string line = "exec " + command, shell = "/bin/sh", flag = "-c";
  char* const argv[] = {shell.data(), flag.data(), line.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  const int failed = posix_spawn(&process.pid_, shell.c_str(), &files, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return process;
  process.pid_ = -1;
  return failure(ErrorCode::io, "cannot start {}: {}", command, std::strerror(failed));
}

OwnedProcess::OwnedProcess(OwnedProcess&& other) noexcept { *this = std::move(other); }

OwnedProcess& OwnedProcess::operator=(OwnedProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(ended_, other.ended_);
  std::swap(status_, other.status_);
  return *this;
}

OwnedProcess::~OwnedProcess() { kill(); }

bool OwnedProcess::running() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return !ended_;
}

std::string OwnedProcess::fate() const {
  if (WIFSIGNALED(status_))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  return fmt::format("exited with status {}", WEXITSTATUS(status_));
}

void OwnedProcess::terminate() {
  if (running()) ::kill(pid_, SIGTERM);
}

void OwnedProcess::kill() {
  if (pid_ < 0 || ended_) return;
  ::kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
}

}  // namespace octavo::fleet
