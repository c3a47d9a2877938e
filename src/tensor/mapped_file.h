// A file seen as memory, read-only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the system that these bytes are not needed again soon: their pages leave this process's memory, the
  // file's cache stays.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace octavo
