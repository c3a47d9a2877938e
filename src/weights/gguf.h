// Reads GGUF files: magic, version, counts, metadata, a table of tensors, and the tensors' data.
// Supports versions 2 and 3, little-endian. The reader is strict. The tensors' data must follow the header
// in table order until the end of the file, each tensor padded to the alignment. No key or name may repeat.
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

// Contents of one file. Metadata and tensors point into the file's memory.
struct GgufContents {
  GgufMetadata metadata;
  std::vector<StoredTensor> tensors;  // in table order
};

// `what` is the name of the file. Errors: corrupt; their messages begin with `what`.
Result<GgufContents> parse_gguf(std::span<const std::byte> file, std::string_view what);

// A checkpoint in one GGUF file, or in several (name-00001-of-00003.gguf ..). The first file contains the
// number of files.
struct Gguf {
  std::vector<MappedFile> files;
  GgufMetadata metadata;              // metadata of the first file
  std::vector<StoredTensor> tensors;  // tensors of all files, sorted by name, without duplicates

  // Maps the files and reads only their headers. Returns not_found, io or corrupt, and invalid_argument if
  // `path` is a file of a split checkpoint, but not the first one.
  static Result<Gguf> open(const std::string& path);

  // Returns null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
};

// Returns whether a model's path is a GGUF file: an existing file, or a path that ends with .gguf and is not
// a folder.
bool is_gguf(const std::string& path);

}  // namespace octavo
