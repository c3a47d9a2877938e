#include "dist/shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace octavo {

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  const int fd = memfd_create("octavo", MFD_CLOEXEC);
  if (fd < 0) return failure(ErrorCode::io, "no shared memory: {}", std::strerror(errno));
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(fd);
    return failure(ErrorCode::io, "no {} bytes of shared memory: {}", bytes, std::strerror(error));
  }
  return open(fd);
}

Result<SharedMemory> SharedMemory::open(int fd) {
  SharedMemory memory;
  memory.fd_ = fd;
  struct stat status {};
  if (fstat(fd, &status) != 0)
    return failure(ErrorCode::io, "shared memory, descriptor {}: {}", fd, std::strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED)
    return failure(ErrorCode::io, "{} bytes of shared memory: {}", size, std::strerror(errno));
  memory.bytes_ = {static_cast<std::byte*>(data), size};
  return memory;
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
