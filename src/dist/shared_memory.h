// Memory that processes of one host share: an anonymous file (memfd), which is freed when its last user ends,
// or a file on tmpfs (of_file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

class SharedMemory {
 public:
  // Creates zeroed memory. Returns an io error if a system call fails.
  static Result<SharedMemory> create(std::size_t bytes);
  // Creates a file without a size, and does not map it. The first process that opens it sets the size.
  // Returns an io error if a system call fails.
  static Result<SharedMemory> create_unsized();
  // Maps memory that another process created, and takes ownership of the descriptor. Returns an io error if
  // a system call fails.
  static Result<SharedMemory> open(int fd);
  // Maps memory of create_unsized() or of_file(). If its size is not `bytes`, the contents are removed and
  // the memory gets this size. Returns an io error, or resource_exhausted if the file system has too little
  // space.
  static Result<SharedMemory> open(int fd, std::size_t bytes);
  // Opens or creates a file on tmpfs, without mapping it, and locks the file for this process and its
  // children. Returns invalid_argument if other users can read the file or if it is not on tmpfs,
  // unavailable if another process has the lock, or io if a system call fails.
  static Result<SharedMemory> of_file(const std::string& path);
  // Maps memory of another process by the number of its descriptor in that process. Both processes must
  // have the same host, user and process namespace. Returns not_found if create() did not make this memory,
  // or io if a system call fails.
  static Result<SharedMemory> open_of(std::int64_t process, std::int64_t descriptor);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Removes the contents of the file, so that the next process that opens it sets the size. Returns false
  // if this is impossible.
  bool clear() const;
  // Allocates all pages, which is eight times faster than page faults at the first use.
  void populate() const;

  // Returns the number of bytes that the system has allocated for pages of the file `fd`.
  static std::size_t allocated(int fd);

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace octavo
