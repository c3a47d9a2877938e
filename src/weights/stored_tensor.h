// A tensor as a file of a checkpoint holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/encoding.h"

namespace octavo {

struct StoredTensor {
  std::string name;
  std::string_view format = {};           // as in the file: "BF16", "Q4_K"
  Encoding encoding = Encoding::plain;    // not plain: a matrix [rows, cols] in blocks of GGUF
  std::optional<DType> dtype = {};        // plain: its numbers; nullopt: the engine has no use for the format
  std::vector<std::int64_t> shape = {};   // of its numbers, whatever their encoding
  std::span<const std::byte> bytes = {};  // inside the file

  bool plain() const { return encoding == Encoding::plain; }
  // Whether the engine can compute with it.
  bool usable() const {
    return !plain() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
};

// A plain tensor of up to four dimensions as a view. The format must be one that the engine knows.
View view_of(const StoredTensor& tensor);

// A matrix. It must be usable.
MatrixPart matrix_of(const StoredTensor& tensor);

// Errors: corrupt, naming the tensor, when a number of it, or a scale of its blocks, is NaN or infinite. It
// must be usable.
Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool);

}  // namespace octavo
