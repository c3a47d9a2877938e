// A file that is mapped read-only into memory. If the file shrinks or the disk fails, the missing bytes
// read as zeros and the process continues; intact() then returns an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

struct Mapping;

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Returns an error if the file became shorter or unreadable during use, so that some bytes were read as
  // zeros. Call it after the last read.
  Result<> intact() const;

  // Returns an error if the file was changed since open(), as far as its size and time of change show. A file
  // that was deleted, or replaced by another one, stays mapped and unchanged.
  Result<> unchanged() const;

  // Returns a text that differs for another file, and for this file after a change.
  std::string identity() const;

  // Tells the operating system that `part` is needed soon. The system reads it into the page cache, while the
  // caller does other work.
  void prefetch(std::span<const std::byte> part) const;
  // Tells the operating system that `part` is not needed soon. The pages leave the process's memory, but
  // stay in the page cache.
  void release(std::span<const std::byte> part) const;

 private:
  struct Identity {
    std::uint64_t device, inode, bytes;
    std::int64_t seconds, nanoseconds;  // time of the last change
    bool operator==(const Identity&) const = default;
  };
  MappedFile(std::string path, const std::byte* data, std::size_t size, const Identity& identity,
             Mapping* mapping)
      : path_(std::move(path)), identity_(identity), data_(data), size_(size), mapping_(mapping) {}

  std::string path_;
  Identity identity_{};
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Mapping* mapping_ = nullptr;  // node in the signal handler's list; null if the file is empty
};

}  // namespace octavo
