// A tensor in a checkpoint file, in the file's encoding.
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
  std::string_view format = {};           // format's name in the file, such as "BF16", "Q4_K"; or "int4" ..
  Encoding encoding = Encoding::plain;    // not plain: a matrix [rows, cols] in GGUF blocks, or a packed one
  std::optional<DType> dtype = {};        // plain: element type; nullopt: the engine cannot use the format
  std::vector<std::int64_t> shape = {};   // number of elements (not of bytes or blocks) in each dimension
  std::span<const std::byte> bytes = {};  // the data inside the file; of a packed matrix, the codes
  // int4, int8, mxfp4 and fp8: the tensors of the file that form this matrix (weights/packed_matrix.h).
  std::shared_ptr<const PackedMatrix> packed = {};

  bool plain() const { return encoding == Encoding::plain; }
  // Returns whether the engine can compute with the tensor.
  bool usable() const {
    return !plain() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
};

// A view of a plain tensor of at most four dimensions. Its format must be usable.
View view_of(const StoredTensor& tensor);

// Slice i along a tensor's first dimension, as a tensor. For a packed tensor this slices codes and scales.
StoredTensor slice_of(const StoredTensor& tensor, std::int64_t i);

// Returns a rectangle of a plain matrix as a tensor. It points into the file if the rows are complete;
// otherwise it is a copy in `memory`.
StoredTensor part_of(const StoredTensor& tensor, std::int64_t first_row, std::int64_t rows,
                     std::int64_t first_col, std::int64_t cols, std::vector<std::byte>& memory);

// Element i of a plain tensor in f32, f16, bf16, i64 or i32. The bytes may be unaligned.
float number_at(const StoredTensor& tensor, std::int64_t i);

void put_number(std::byte* data, DType type, std::size_t i, float value);

// Returns the plain tensor in format `type`: the same tensor, or a copy in `memory` if format or alignment
// differ.
StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool);

// The matrix of a tensor that is usable and not packed.
MatrixPart matrix_of(const StoredTensor& tensor);

// Errors: corrupt, with the tensor, if a number or a block's scale is NaN or infinite. The tensor must be
// usable and not packed.
Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool);

}  // namespace octavo
