#include "transfer/tiers/shared_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace octavo {
namespace {

void lock_file(int file, int how) {
  while (flock(file, how) != 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<SharedFolder>> SharedFolder::open(const std::filesystem::path& folder) {
  const auto open_file = [&](const char* name) {
    return ::open((folder / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  };
  const int state = open_file("state"), users = open_file("users");
  std::unique_ptr<SharedFolder> shared(new SharedFolder(state, users));
  if (state < 0 || users < 0)
    return failure(ErrorCode::io, "cannot open files in {}: {}", folder.string(), std::strerror(errno));
  // Without this lock, another engine's alone() could return true between open_file() and lock_file(),
  // although this engine already uses the folder.
  const Locked locked(*shared);
  lock_file(users, LOCK_SH);
  return shared;
}

SharedFolder::~SharedFolder() {
  if (state_ >= 0) close(state_);
  if (users_ >= 0) close(users_);
}

SharedFolder::Locked::Locked(SharedFolder& folder) : folder_(folder), lock_(folder.mutex_) {
  lock_file(folder_.state_, LOCK_EX);
  if (pread(folder_.state_, &state, sizeof state, 0) != static_cast<ssize_t>(sizeof state)) state = {};
}

SharedFolder::Locked::~Locked() {
  // If pwrite() fails, state.files is wrong until an engine reads the folder again.
  [[maybe_unused]] const ssize_t written = pwrite(folder_.state_, &state, sizeof state, 0);
  lock_file(folder_.state_, LOCK_UN);
}

bool SharedFolder::Locked::alone() const {
  const bool alone = flock(folder_.users_, LOCK_EX | LOCK_NB) == 0;
  lock_file(folder_.users_, LOCK_SH);
  return alone;
}

}  // namespace octavo
