// Writes a file that is either complete or absent, even after a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::batches {

class DurableFile {
 public:
  // The file gets the name `path` in commit().
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::string_view bytes);
  std::int64_t bytes() const { return bytes_; }
  // Returns an io error if this call or an earlier write has failed.
  Result<> commit();

 private:
  void flush();
  void write_out(std::string_view bytes);

  const std::string path_, partial_;
  int file_;
  int error_ = 0;  // errno of the first failed call; 0: no call has failed
  std::int64_t bytes_ = 0;
  std::string buffer_;
};

}  // namespace octavo::batches
