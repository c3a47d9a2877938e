// Memory that processes of one host share: an anonymous file, which is freed when its last user ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

class SharedMemory {
 public:
  // Creates zeroed memory. Returns io after a system error.
  static Result<SharedMemory> create(std::size_t bytes);
  // Creates memory without a size, which this process does not map. Its first user sets the size. Returns io.
  static Result<SharedMemory> create_unsized();
  // Maps memory of another process by its descriptor, and takes ownership of the descriptor. Error: io.
  static Result<SharedMemory> open(int fd);
  // The same for memory of create_unsized() or of_file(). If the size differs, the memory becomes empty and
  // gets this size. Returns io, or resource_exhausted if its file system has too little space.
  static Result<SharedMemory> open(int fd, std::size_t bytes);
  // Opens or creates a file in a file system in memory (tmpfs), and locks it for this process and its
  // children. This process does not map it. Returns invalid_argument if other users can read the file or if
  // it is not in memory, unavailable if another process has the lock, or io.
  static Result<SharedMemory> of_file(const std::string& path);
  // Maps memory of another process by the number of its descriptor in that process. Host, user and process
  // namespace must be the same. Returns io, or not_found if create() did not make this memory.
  static Result<SharedMemory> open_of(std::int64_t process, std::int64_t descriptor);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Removes the content of the file, so that its next user sets the size. Returns false if this is
  // impossible.
  bool clear() const;
  // Allocates all pages, which is eight times faster than page faults at the first use.
  void populate() const;

  // Returns the bytes that the system has allocated for the pages of this descriptor's memory.
  static std::size_t allocated(int fd);

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace octavo
