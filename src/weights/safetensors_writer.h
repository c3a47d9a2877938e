// Writes a safetensors file, one tensor at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

struct TensorEntry {
  std::string name;
  std::string_view format;  // name of the number format in the file: "BF16", "I32"
  std::vector<std::int64_t> shape;
  std::size_t bytes;
};

class SafetensorsWriter {
 public:
  // Creates the file and writes its header. Tensors with the largest elements come first in the file, so that
  // every tensor is aligned. Errors: io if writing fails; the message names the file.
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<TensorEntry> entries);
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

  // Writes the data of one entry. Entries may be written in any order.
  Result<> write(const std::string& name, std::span<const std::byte> bytes);
  // Waits until the file is on disk. Every entry must have been written.
  Result<> finish();

 private:
  struct Range {
    std::size_t offset;
    std::size_t bytes;
  };
  SafetensorsWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Result<> write_at(std::size_t offset, std::span<const std::byte> bytes);

  std::string path_;
  int file_;
  std::map<std::string, Range> unwritten_;
};

}  // namespace octavo
