// The GGUF file format: magic, version, counts, metadata, a table of tensors, and their data.
//
// Supports versions 2 and 3, little-endian. Strict: the tensors' data follows in table order, each padded to
// the alignment, from the end of the header to the end of the file; no key or name repeats. Errors say what
// is wrong.
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

// One file. Both parts point into it.
struct GgufContents {
  GgufMetadata metadata;
  std::vector<StoredTensor> tensors;  // in the order of the table
};

// Errors are ErrorCode::corrupt and begin with `what`, the file's name.
Result<GgufContents> parse_gguf(std::span<const std::byte> file, std::string_view what);

// A checkpoint in one file, or in several that the first one counts (name-00001-of-00003.gguf ..).
struct Gguf {
  std::vector<MappedFile> files;
  GgufMetadata metadata;              // metadata of the first file
  std::vector<StoredTensor> tensors;  // tensors of all files; ascending by unique name

  // Maps the files; reads only their headers. Errors: not_found, io, corrupt; invalid_argument if the file is
  // a later part.
  static Result<Gguf> open(const std::string& path);

  // Null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
};

// Whether a model's path is a GGUF file: any file, or a path with the suffix.
bool is_gguf(const std::string& path);

}  // namespace octavo
