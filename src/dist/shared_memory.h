// Memory that processes of one host share: a file without a name, which is gone with its last user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace octavo {

class SharedMemory {
 public:
  // Zeros. Errors: io.
  static Result<SharedMemory> create(std::size_t bytes);
  // Of another process, which has handed over the descriptor; owned from now on. Errors: io.
  static Result<SharedMemory> open(int fd);
  // Of another process of this host, user and process namespace, by its descriptor there. Errors: io;
  // not_found when that is no memory made by create().
  static Result<SharedMemory> open_of(std::int64_t process, std::int64_t descriptor);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Takes all its pages now: one by one, as they are used, takes eight times as long.
  void populate() const;

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace octavo
