// A file mapped read-only into memory. If the file becomes shorter, or a read from disk fails, the missing
// bytes read as zeros (the process does not end) and intact() reports it.
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

  // Call it after the last read. Error: some bytes were missing when they were read.
  Result<> intact() const;

  // Tells the system that these bytes are not needed soon: their pages leave the process's memory; the page
  // cache keeps them.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size, Mapping* mapping)
      : path_(std::move(path)), data_(data), size_(size), mapping_(mapping) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Mapping* mapping_ = nullptr;  // same lifetime; null if the file is empty
};

}  // namespace octavo
