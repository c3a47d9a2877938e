// A tensor in the encoding of its checkpoint file.
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
  std::string_view format = {};           // name in the file: "BF16", "Q4_K"; "int4"
  Encoding encoding = Encoding::plain;    // not plain: a matrix [rows, cols] in GGUF blocks, or packed
  std::optional<DType> dtype = {};        // plain: element type; nullopt: the engine cannot use the format
  std::vector<std::int64_t> shape = {};   // counts numbers, in every encoding
  std::span<const std::byte> bytes = {};  // inside the file; for a packed matrix, its codes
  // int4, int8, mxfp4 and fp8: the file's tensors that form this matrix (weights/packed_matrix.h).
  std::shared_ptr<const PackedMatrix> packed = {};

  bool plain() const { return encoding == Encoding::plain; }
  // Whether the engine can compute with it.
  bool usable() const {
    return !plain() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
};

// A view of a plain tensor of up to four dimensions. The engine must know the format.
View view_of(const StoredTensor& tensor);

// Entry i of a tensor's first dimension as a tensor. For a packed one (packed_matrix.h), of its codes and
// scales.
StoredTensor slice_of(const StoredTensor& tensor, std::int64_t i);

// A block of rows and columns of a plain matrix as a tensor: inside the file if the rows are whole, else a
// copy in `memory`.
StoredTensor part_of(const StoredTensor& tensor, std::int64_t first_row, std::int64_t rows,
                     std::int64_t first_col, std::int64_t cols, std::vector<std::byte>& memory);

// Number i of a plain tensor in f32, f16, bf16, i64 or i32; the bytes may be unaligned.
float number_at(const StoredTensor& tensor, std::int64_t i);

void put_number(std::byte* data, DType type, std::size_t i, float value);

// The plain tensor in this format: unchanged, or a copy in `memory` if its format or alignment does not fit.
StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool);

// A matrix that is usable and not packed.
MatrixPart matrix_of(const StoredTensor& tensor);

// Errors: corrupt, naming the tensor, if a number or a block's scale is NaN or infinite. The tensor must be
// usable and not packed.
Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool);

}  // namespace octavo
