// Quantises plain matrices while a checkpoint is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/encoding.h"

namespace octavo {

// The kernels multiply this number of columns at a time, with one scale.
inline constexpr std::int64_t kColumnsMultiple = 32;
// Maximum number of int4 columns that share a scale.
inline constexpr std::int64_t kInt4Group = 128;

// Scales per row in int8 or int4: int4 groups are the largest up to 128 columns that divide the row. `cols`
// is a multiple of 32.
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

  // Makes `part` a view of the vectors. Omits zeros that all have the middle value.
  void set_part(Encoding encoding, std::int64_t rows, std::int64_t cols);
};

// int8: one scale per row; the largest magnitude becomes 127. int4: a scale and a zero per group (groups_of);
// of several ranges, the one with the smallest squared error. `matrix` is f32, f16 or bf16 [rows, cols], any
// strides. Error: the number of columns is not a multiple of 32.
Result<QuantizedMatrix> quantize(const View& matrix, Encoding encoding, ThreadPool& pool);

}  // namespace octavo
