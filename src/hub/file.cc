#include "hub/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "hub/files.h"

namespace octavo::hub {

namespace fs = std::filesystem;

Result<File> File::open(fs::path path) {
  TRY_VOID(make_parent(path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return file_failure("cannot open", path);
  return File(descriptor, std::move(path));
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<File> locked(const fs::path& path) {
  TRY(File file, File::open(path));
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) log_info("waiting for another process that is downloading the same file");
  while (::flock(file.descriptor(), LOCK_EX) != 0)
    if (errno != EINTR) return file_failure("cannot lock", path);
  return file;
}

}  // namespace octavo::hub
