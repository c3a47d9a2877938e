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
  Encoding quantization = Encoding::int8;  // int8 or int4, of the layers' matrices
  bool keep_embedding = false;  // embedding and output matrix stay as they are; else they become int8
  int threads = 0;              // with 0, one for each CPU of the process
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Converted {
  std::int64_t parameters = 0;
  std::uint64_t bytes_before = 0, bytes = 0;  // bytes of the tensors
};

// Writes into the directory `to`, which must be new or empty, the checkpoint `from` with its matrices as
// LoadOptions::quantization makes them: the same codes, scales and zeros, in the layout of
// compressed-tensors. Other files of `from` are copied, config.json last. Errors: those of Model::load for
// `from`; invalid_argument when `to` has contents, a matrix is quantised already, is stored transposed or has
// columns that int4 cannot group; io.
Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options);

}  // namespace octavo
