// Writes a checkpoint with quantised matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "tensor/encoding.h"

namespace octavo {

struct ConvertOptions {
  Encoding quantization = Encoding::int8;  // format of the layers' matrices: int8 or int4
  bool keep_embedding = false;  // true: embedding and output matrix are not quantised; false: they become
                                // int8
  int threads = 0;              // number of threads; 0: one per CPU of the process
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Converted {
  std::int64_t parameters = 0;
  std::uint64_t bytes_before = 0, bytes = 0;  // size of all tensors before and after, in bytes
};

// Writes a quantised copy of the checkpoint `from` into the directory `to`, which must be new or empty.
// Codes, scales and zeros are those that LoadOptions::quantization makes, in the layout of
// compressed-tensors. Other files are copied, config.json last. Returns the errors of Model::load for `from`;
// io; invalid_argument if `to` is not empty, or if a matrix is already quantised, is stored transposed, or
// has a number of columns that int4 cannot divide into groups.
Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options);

}  // namespace octavo
