// Writes a quantised copy of a checkpoint (`octavo model convert`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "tensor/encoding.h"

namespace octavo {

struct ConvertOptions {
  Encoding quantization = Encoding::int8;  // format for the matrices of the layers: int8 or int4
  // true: embedding and output matrix keep their format; false: they become int8
  bool keep_embedding = false;
  int threads = 0;  // 0: one thread per CPU of the process
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Converted {
  std::int64_t parameters = 0;
  std::uint64_t bytes_before = 0, bytes = 0;  // size of all tensors, before and after the conversion
};

// Writes a quantised copy of the checkpoint `from` into the directory `to`, which must be new or empty.
// Codes, scales and zero points are the same that LoadOptions::quantization makes, in the layout of
// compressed-tensors. Other files are copied, config.json last.
// Returns the errors of Model::load for `from`, io, and invalid_argument if `to` is not empty, or if a matrix
// is already quantised, is stored transposed, or has a number of columns that int4 cannot divide into groups.
Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options);

}  // namespace octavo
