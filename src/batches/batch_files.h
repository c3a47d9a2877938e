// Writes a file so that it is complete or absent, also after a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::batches {

class DurableFile {
 public:
  // Nothing exists at `path` before commit().
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::string_view bytes);
  std::int64_t bytes() const { return bytes_; }
  // Errors: io, of any call so far.
  Result<> commit();

 private:
  void flush();
  void write_out(std::string_view bytes);

  const std::string path_, partial_;
  int file_;
  int error_ = 0;  // errno of the first failed call
  std::int64_t bytes_ = 0;
  std::string buffer_;
};

}  // namespace octavo::batches
