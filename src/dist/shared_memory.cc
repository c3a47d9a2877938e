#include "dist/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {
namespace {

// The size is fixed, so that other processes can rely on it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::string_view kLink = "/memfd:octavo";  // prefix of the descriptor's link in /proc

}  // namespace

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  const int fd = memfd_create("octavo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return failure(ErrorCode::io, "cannot create shared memory: {}", std::strerror(errno));
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(fd);
    return failure(ErrorCode::io, "cannot allocate {} bytes of shared memory: {}", bytes,
                   std::strerror(error));
  }
  fcntl(fd, F_ADD_SEALS, kSeals);
  return open(fd);
}

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
  struct stat status{};
  if (fstat(fd, &status) != 0)
    return failure(ErrorCode::io, "cannot open the shared memory of descriptor {}: {}", fd,
                   std::strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED)
    return failure(ErrorCode::io, "{} bytes of shared memory: {}", size, std::strerror(errno));
  memory.bytes_ = {static_cast<std::byte*>(data), size};
  return memory;
}

// Kernels before 5.14 do not support MADV_POPULATE_WRITE; they allocate pages at the first use.
void SharedMemory::populate() const { madvise(bytes_.data(), bytes_.size(), MADV_POPULATE_WRITE); }

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
