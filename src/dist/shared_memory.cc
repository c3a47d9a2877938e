#include "dist/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/pages.h"

namespace octavo {
namespace {

// Seals fix the size, so that other processes can rely on it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::string_view kLink = "/memfd:octavo";  // prefix of the descriptor's link in /proc
constexpr int kLockMs = 20, kLockMsMax = 5'000;

// Maps the file at an address that is aligned for huge pages. Returns MAP_FAILED after an error.
void* map_aligned(int fd, std::size_t bytes) {
  if (bytes < kHugePage) return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const std::size_t pages = (bytes + 4095) / 4096 * 4096;
  void* all = mmap(nullptr, pages + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return all;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(all) % kHugePage;
  std::byte* const data = static_cast<std::byte*>(all) + before;
  if (before > 0) munmap(all, before);
  munmap(data + pages, kHugePage - before);
  void* mapped = mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) munmap(data, pages);
  return mapped;
}

Result<> set_size(int fd, std::size_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return failure(ErrorCode::io, "cannot allocate {} bytes of shared memory: {}", bytes,
                   std::strerror(errno));
  fcntl(fd, F_ADD_SEALS, kSeals);
  return {};
}

// Reserves the pages of a file in a file system with a limit. Otherwise, the process would be killed when it
// first uses a page for which the file system has no space left.
Result<> reserve(int fd, std::size_t bytes) {
  struct statvfs system{};
  if (fstatvfs(fd, &system) != 0 || system.f_blocks == 0) return {};  // no limit
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0)
    return failure(ErrorCode::resource_exhausted, "its file system has no space for {} bytes: {}", bytes,
                   std::strerror(error));
  return {};
}

Result<std::size_t> size_of(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0)
    return failure(ErrorCode::io, "shared memory, descriptor {}: {}", fd, std::strerror(errno));
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

Result<SharedMemory> SharedMemory::create_unsized() {
  SharedMemory memory;
  memory.fd_ = memfd_create("octavo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0) return failure(ErrorCode::io, "cannot create shared memory: {}", std::strerror(errno));
  return memory;
}

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  TRY(SharedMemory memory, create_unsized());
  TRY_VOID(set_size(memory.fd_, bytes));
  return open(std::exchange(memory.fd_, -1));
}

Result<SharedMemory> SharedMemory::open(int fd, std::size_t bytes) {
  SharedMemory memory;
  memory.fd_ = fd;
  TRY(const std::size_t size, size_of(fd));
  if (size != bytes) {
    memory.clear();
    TRY_VOID(set_size(fd, bytes));
  }
  TRY_VOID(reserve(fd, bytes));
  return open(std::exchange(memory.fd_, -1));
}

Result<SharedMemory> SharedMemory::of_file(const std::string& path) {
  SharedMemory memory;
  memory.fd_ =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (memory.fd_ < 0) return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  struct stat status{};
  struct statfs system{};
  if (fstat(memory.fd_, &status) != 0 || fstatfs(memory.fd_, &system) != 0)
    return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode) || system.f_type != TMPFS_MAGIC)
    return failure(ErrorCode::invalid_argument, "{} is not a file in memory: use a path in /dev/shm", path);
  if (status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failure(ErrorCode::invalid_argument,
                   "{} contains prompts: it must belong to the user of this process and have mode 0600",
                   path);
  // After a server was killed, its children may hold the lock for a short time.
  for (int waited_ms = 0; flock(memory.fd_, LOCK_EX | LOCK_NB) != 0; waited_ms += kLockMs) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
    if (waited_ms >= kLockMsMax)
      return failure(ErrorCode::unavailable, "{} is in use by another process: use another path", path);
    std::this_thread::sleep_for(std::chrono::milliseconds(kLockMs));
  }
  return memory;
}

bool SharedMemory::clear() const { return ftruncate(fd_, 0) == 0; }

Result<SharedMemory> SharedMemory::open_of(std::int64_t process, std::int64_t descriptor) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  char target[64] = {};
  if (readlink(path.c_str(), target, sizeof target - 1) < 0)
    return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  if (!std::string_view(target).starts_with(kLink))
    return failure(ErrorCode::not_found, "{} is not shared memory", path);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  if (fcntl(fd, F_GET_SEALS) != kSeals) {
    close(fd);
    return failure(ErrorCode::not_found, "{} is not shared memory", path);
  }
  return open(fd);
}

Result<SharedMemory> SharedMemory::open(int fd) {
  SharedMemory memory;
  memory.fd_ = fd;
  TRY(const std::size_t size, size_of(fd));
  void* data = map_aligned(fd, size);
  if (data == MAP_FAILED)
    return failure(ErrorCode::io, "{} bytes of shared memory: {}", size, std::strerror(errno));
  memory.bytes_ = {static_cast<std::byte*>(data), size};
  return memory;
}

// Kernels before 5.14 do not support MADV_POPULATE_WRITE; they allocate pages at the first use.
void SharedMemory::populate() const { madvise(bytes_.data(), bytes_.size(), MADV_POPULATE_WRITE); }

std::size_t SharedMemory::allocated(int fd) {
  struct stat status{};
  return fstat(fd, &status) == 0 ? static_cast<std::size_t>(status.st_blocks) * 512 : 0;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  if (fd_ >= 0) close(fd_);
}

}  // namespace octavo
