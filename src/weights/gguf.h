// The GGUF file format: magic, version, counts, metadata, a table of tensors, and their data.
//
// Supports versions 2 and 3, little-endian. The reader is strict: the tensors' data follows the header in
// table order, each padded to the alignment, until the end of the file; no key or name may repeat.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/mapped_file.h"
#include "weights/gguf_metadata.h"
#include "weights/stored_tensor.h"

namespace octavo {

inline constexpr std::uint64_t kGgufTensorsMax = 1'000'000;
inline constexpr std::size_t kGgufTensorNameBytesMax = 255;
inline constexpr std::uint32_t kGgufRankMax = 4;
inline constexpr std::int64_t kGgufFilesMax = 10'000;

// Contents of one file. Both members point into it.
struct GgufContents {
  GgufMetadata metadata;
  std::vector<StoredTensor> tensors;  // in the order of the table
};

// Errors are ErrorCode::corrupt and begin with `what`, the name of the file.
Result<GgufContents> parse_gguf(std::span<const std::byte> file, std::string_view what);

// A checkpoint in one GGUF file, or in several files (name-00001-of-00003.gguf ..), whose number is in the
// first file.
struct Gguf {
  std::vector<MappedFile> files;
  GgufMetadata metadata;              // metadata of the first file
  std::vector<StoredTensor> tensors;  // tensors of all files; ascending by unique name

  // Maps the files and reads only their headers. Errors: not_found, io, corrupt; invalid_argument if the file
  // is not the first part.
  static Result<Gguf> open(const std::string& path);

  // Null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
};

// Returns whether a model's path means a GGUF file: an existing file, or a path that ends with .gguf.
bool is_gguf(const std::string& path);

}  // namespace octavo
