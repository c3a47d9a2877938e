// Quantises plain matrices while a checkpoint is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/encoding.h"

namespace octavo {

// Divisor of the number of columns: kernels multiply 32 columns at a time, with one scale.
inline constexpr std::int64_t kColumnsMultiple = 32;
// Maximum number of int4 columns that share a scale.
inline constexpr std::int64_t kInt4Group = 128;

// Number of scales in a row of int8 or int4. An int4 group has the largest size up to 128 that divides the
// number of columns. `cols` is a multiple of 32.
inline std::int64_t groups_of(Encoding encoding, std::int64_t cols) {
  if (encoding != Encoding::int4 || cols <= kInt4Group) return 1;
  std::int64_t group = kInt4Group;
  while (cols % group != 0) group -= kColumnsMultiple;
  return cols / group;
}

// A quantised matrix and its memory.
struct QuantizedMatrix {
  Buffer codes;
  std::vector<float> scales;
  std::vector<std::uint8_t> zeros;
  MatrixPart part;

  // Makes `part` a view of the vectors. If all zeros have the middle value, `part` has no zeros.
  void set_part(Encoding encoding, std::int64_t rows, std::int64_t cols);
};

// int8: one scale per row; the largest magnitude becomes 127. int4: a scale and a zero per group (groups_of),
// from the range with the smallest squared error among several. matrix: f32, f16 or bf16 [rows, cols], any
// strides. Error: the number of columns is not a multiple of 32.
Result<QuantizedMatrix> quantize(const View& matrix, Encoding encoding, ThreadPool& pool);

}  // namespace octavo
