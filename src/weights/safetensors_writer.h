// Writes a safetensors file.
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

// Description of a tensor to write.
struct TensorEntry {
  std::string name;
  std::string_view format;  // format's name in the file: "BF16", "I32"
  std::vector<std::int64_t> shape;
  std::size_t bytes;
};

class SafetensorsWriter {
 public:
  // Creates the file and writes its header. Tensors with the largest elements come first, so that all are
  // aligned. Errors: io, with the file's name.
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<TensorEntry> entries);
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

  // Writes the data of one entry. The order of calls is free. Errors: io.
  Result<> write(const std::string& name, std::span<const std::byte> bytes);
  // Waits until the file is on disk. Every entry must have been written. Errors: io.
  Result<> finish();

 private:
  struct Place {
    std::size_t offset;
    std::size_t bytes;
  };
  SafetensorsWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Result<> write_at(std::size_t offset, std::span<const std::byte> bytes);

  std::string path_;
  int file_;
  std::map<std::string, Place> unwritten_;
};

}  // namespace octavo
