// Memory that processes of one host share: an anonymous file, which is freed when its last user ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace octavo {

class SharedMemory {
 public:
  // Creates zeroed memory. Returns io after a system error.
  static Result<SharedMemory> create(std::size_t bytes);
  // Maps memory of another process by its descriptor, and takes ownership of the descriptor. Error: io.
  static Result<SharedMemory> open(int fd);
  // Maps memory of another process by the number of its descriptor in that process. Host, user and process
  // namespace must be the same. Returns io, or not_found if create() did not make this memory.
  static Result<SharedMemory> open_of(std::int64_t process, std::int64_t descriptor);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Allocates all pages, which is eight times faster than page faults at the first use.
  void populate() const;

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace octavo
