#include "remote/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/clock.h"

extern char** environ;

namespace octavo::remote {
namespace {

constexpr int kEndingMs = 100;

std::string fate(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(socket, other.socket);
  std::swap(pid_, other.pid_);
  return *this;
}

ChildProcess::~ChildProcess() { kill(); }

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments, const std::string& program,
                                         std::span<const int> shared) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(ErrorCode::io, "cannot create a socket: {}", std::strerror(errno));
  ChildProcess child;
  child.socket = FrameSocket(ends[0]);
  const FrameSocket theirs(ends[1]);

  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // Copies the descriptors to numbers above their final range first, so that no dup2() overwrites one of
  // them.
  const int first_free = kChildSocket + 1 + static_cast<int>(shared.size());
  std::vector<FrameSocket> copies;
  const auto hand_over = [&](int fd, int number) {
    copies.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, first_free));
    posix_spawn_file_actions_adddup2(&files, copies.back().fd(), number);
  };
  hand_over(theirs.fd(), kChildSocket);
  for (int i = 0; i < static_cast<int>(shared.size()); ++i)
    hand_over(shared[static_cast<std::size_t>(i)], kChildSocket + 1 + i);
  posix_spawn_file_actions_addclosefrom_np(&files, first_free);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  const int failed = posix_spawn(&child.pid_, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    child.pid_ = -1;
    return failure(ErrorCode::io, "cannot start {}: {}", program, std::strerror(failed));
  }
  return child;
}

ChildProcess ChildProcess::of_another_host(FrameSocket connection) {
  ChildProcess child;
  child.socket = std::move(connection);
  return child;
}

void ChildProcess::stop(int grace_ms) {
  if (pid_ < 0) return void(kill());
  shutdown(socket.fd(), SHUT_RDWR);
  for (int waited = 0; waited < grace_ms; waited += 5) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill();
}

std::string ChildProcess::kill() {
  if (pid_ < 0) {
    const bool connected = socket.fd() >= 0;
    socket = FrameSocket();
    return connected ? "the connection was closed" : "gone";
  }
  int status = 0;
  bool ended = false;
  for (int waited = 0; waited < kEndingMs && !ended; waited += 5) {
    ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!ended) {
    ::kill(pid_, SIGKILL);
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return fate(status);
}

bool Restarts::again(std::int64_t began_us) {
  constexpr std::int64_t kYoungUs = 10'000'000;
  young_deaths_ = now_us() - began_us < kYoungUs ? young_deaths_ + 1 : 0;
  return young_deaths_ < kYoungDeathsMax;
}

void follow_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  // If the parent died before prctl(), the signal never arrives. In this case its end of the socket is
  // closed.
  pollfd end{kChildSocket, 0, 0};
  if (poll(&end, 1, 0) > 0) _exit(EXIT_FAILURE);
}

}  // namespace octavo::remote
