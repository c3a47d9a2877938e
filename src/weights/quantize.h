// Quantises plain matrices to int8 or int4 while a checkpoint is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/encoding.h"

namespace octavo {

// The number of columns must be a multiple of 32, because kernels multiply 32 columns with one scale at a
// time.
inline constexpr std::int64_t kColumnsMultiple = 32;
// Largest number of int4 columns that share a scale.
inline constexpr std::int64_t kInt4Group = 128;

// Number of scales in a row of int8 or int4. An int4 group has the largest size up to 128 that is a
// multiple of 32 and divides the number of columns.
inline std::int64_t groups_of(Encoding encoding, std::int64_t cols) {
  if (encoding != Encoding::int4 || cols <= kInt4Group) return 1;
  std::int64_t group = kInt4Group;
  while (cols % group != 0) group -= kColumnsMultiple;
  return cols / group;
}

struct QuantizedMatrix {
  Buffer codes;
  std::vector<float> scales;
  std::vector<std::uint8_t> zeros;
  MatrixPart part;

  // Makes `part` a view of codes, scales and zeros. If all zero points equal zero_of(encoding), part.zeros is
  // empty.
  void set_part(Encoding encoding, std::int64_t rows, std::int64_t cols);
};

// Quantises f32, f16 or bf16 [rows, cols] with any strides. int8 has one scale per row, which maps the
// largest magnitude to 127. int4 has a scale and a zero point per group (groups_of). For the range of a
// group, it tries several candidates and takes the one with the smallest squared error. Returns an error if
// the number of columns is not a multiple of 32.
Result<QuantizedMatrix> quantize(const View& matrix, Encoding encoding, ThreadPool& pool);

}  // namespace octavo
