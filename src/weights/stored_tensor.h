// A tensor as a file of a checkpoint holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/encoding.h"

namespace octavo {

struct PackedMatrix;

struct StoredTensor {
  std::string name;
  std::string_view format = {};           // as in the file: "BF16", "Q4_K"; "int4"
  Encoding encoding = Encoding::plain;    // not plain: a matrix [rows, cols] in blocks of GGUF, or packed
  std::optional<DType> dtype = {};        // plain: its numbers; nullopt: the engine has no use for the format
  std::vector<std::int64_t> shape = {};   // of its numbers, whatever their encoding
  std::span<const std::byte> bytes = {};  // inside the file; of a packed matrix its codes
  // Of int4, int8, mxfp4 and fp8: the tensors of the file that are this matrix together
  // (weights/packed_matrix.h).
  std::shared_ptr<const PackedMatrix> packed = {};

  bool plain() const { return encoding == Encoding::plain; }
  // Whether the engine can compute with it.
  bool usable() const {
    return !plain() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
};

// A plain tensor of up to four dimensions as a view. The format must be one that the engine knows.
View view_of(const StoredTensor& tensor);

// Entry i of the first dimension of a tensor, as a tensor of its own. Of a packed one (packed_matrix.h): of
// its codes and scales.
StoredTensor slice_of(const StoredTensor& tensor, std::int64_t i);

// These rows and columns of a plain matrix as one of their own: inside the file where the rows are whole,
// else a copy in `memory`.
StoredTensor part_of(const StoredTensor& tensor, std::int64_t first_row, std::int64_t rows,
                     std::int64_t first_col, std::int64_t cols, std::vector<std::byte>& memory);

// Number i of a plain tensor in f32, f16, bf16, i64 or i32, wherever its bytes lie.
float number_at(const StoredTensor& tensor, std::int64_t i);

void put_number(std::byte* data, DType type, std::size_t i, float value);

// The plain tensor in this format: itself, or, when its format or its alignment does not fit, a copy in
// `memory`.
StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool);

// A matrix that is usable and not packed.
MatrixPart matrix_of(const StoredTensor& tensor);

// Errors: corrupt, naming the tensor, when a number of it, or a scale of its blocks, is NaN or infinite. It
// must be usable and not packed.
Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool);

}  // namespace octavo
