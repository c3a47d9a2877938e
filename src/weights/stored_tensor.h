// A tensor in a checkpoint file, in the file's encoding. It points into the mapped file, or into memory of
// the checkpoint.
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
  // name of the number format in the file, such as "BF16" or "Q4_K"; the encoding's name for packed
  // matrices
  std::string_view format = {};
  // if not plain, the tensor is a matrix [rows, cols] or a stack of matrices
  Encoding encoding = Encoding::plain;
  // element type of a plain tensor; nullopt: the engine cannot use the format
  std::optional<DType> dtype = {};
  std::vector<std::int64_t> shape = {};   // in elements, not in bytes or blocks
  std::span<const std::byte> bytes = {};  // data in the file; the codes if the matrix is packed
  // The tensors of the file that form an int4, int8, mxfp4 or fp8 matrix (packed_matrix.h).
  std::shared_ptr<const PackedMatrix> packed = {};

  bool plain() const { return encoding == Encoding::plain; }
  // Returns whether the engine can compute with the number format.
  bool usable() const {
    return !plain() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
};

// Returns a view of a plain tensor. The tensor must be usable and have at most four dimensions.
View view_of(const StoredTensor& tensor);

// Returns slice i along the first dimension. For a packed tensor, this slices codes and scales.
StoredTensor slice_of(const StoredTensor& tensor, std::int64_t i);

// Returns a rectangle of a plain matrix. The result points into the file if its rows are complete;
// otherwise it is a copy in `memory`.
StoredTensor part_of(const StoredTensor& tensor, std::int64_t first_row, std::int64_t rows,
                     std::int64_t first_col, std::int64_t cols, std::vector<std::byte>& memory);

// Returns element i of a plain tensor in f32, f16, bf16, i64 or i32. The bytes may be unaligned.
float number_at(const StoredTensor& tensor, std::int64_t i);

void put_number(std::byte* data, DType type, std::size_t i, float value);

// Converts a plain tensor to `type`. The result is the tensor itself, or a copy in `memory` if format or
// alignment differ.
StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool);

// The tensor must be usable and not packed.
MatrixPart matrix_of(const StoredTensor& tensor);

// Errors: corrupt if a number or a block's scale is NaN or infinite (the message names the tensor). The
// tensor must be usable and not packed.
Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool);

}  // namespace octavo
