// A file seen as memory, read-only. Where the file ends earlier than it did when it was opened (somebody cut
// it), or the disk cannot give it, its bytes become zeros instead of the end of the process, and intact()
// says so.
#pragma once

#include <cstddef>
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

  // Error: bytes that were read were no longer there. Ask when all has been read.
  Result<> intact() const;

  // Tells the system that these bytes are not needed again soon: their pages leave this process's memory, the
  // file's cache stays.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size, Mapping* mapping)
      : path_(std::move(path)), data_(data), size_(size), mapping_(mapping) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Mapping* mapping_ = nullptr;  // of the same lifetime; null: there are no bytes
};

}  // namespace octavo
