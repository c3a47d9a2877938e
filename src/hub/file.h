// An open file, and locks between processes.
#pragma once

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace octavo::hub {

class File {
 public:
  // Opens it for reading and writing; creates it, and its folder, if it does not exist. Error: io.
  static Result<File> open(std::filesystem::path path);
  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&&) = delete;
  ~File();

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  File(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::filesystem::path path_;
};

// Waits for the file's lock, which is released with the returned object or the process.
Result<File> locked(const std::filesystem::path& path);

}  // namespace octavo::hub
