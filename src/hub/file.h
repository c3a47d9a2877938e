#pragma once

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace octavo::hub {

class File {
 public:
  // Opens the file for reading and writing. Creates the file and its folder if necessary. Returns io on
  // failure.
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

// Waits for a lock on the file. Destroying the result, or the end of the process, releases the lock.
Result<File> locked(const std::filesystem::path& path);

}  // namespace octavo::hub
