// Encodings of weight matrices in checkpoints: plain floats, GGUF blocks, and codes with separate scales.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/view.h"

namespace octavo {

// plain       f32, f16 or bf16 numbers
// q8_0 ..     GGUF blocks: `elements` consecutive numbers of a row in `bytes` bytes, scales included
// int4, int8  unsigned codes, one byte each: scale * (code - zero point); each group has a scale and a zero
// point
// fp8         e4m3 numbers (no infinity, NaN is 0x7f): scale * number; each group has a scale
// mxfp4       4-bit e2m1 numbers, one in each byte: scale * number; each group has a scale. In MXFP4 a group
//             has 32 columns and a power of two, in NVFP4 it has 16 columns
enum class Encoding : std::uint8_t {
  plain,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  iq3_s,
  iq3_xxs,
  iq2_s,
  iq2_xs,
  iq2_xxs,
  iq1_s,
  iq1_m,
  tq1_0,
  tq2_0,
  q1_0,
  int4,
  int8,
  fp8,
  mxfp4,
};

constexpr Encoding kFirstBlocks = Encoding::q8_0, kLastBlocks = Encoding::q1_0;

std::string_view name(Encoding encoding);

// Size of a GGUF block. The result is {1, 1} for int4, int8, mxfp4 and fp8, and {1, 0} for plain.
struct BlockShape {
  int elements;
  int bytes;
};
BlockShape block_shape(Encoding encoding);

// A matrix or some of its rows, in host memory, in the encoding of the checkpoint. Does not own the memory.
struct MatrixPart {
  Encoding encoding = Encoding::plain;
  View values;       // plain: f32, f16 or bf16 [rows, cols], any strides; else u8 [rows, bytes of a row]
  // f32 [rows, groups]; empty for plain and GGUF. A group is cols / groups consecutive numbers of a row.
  View scales = {};
  // u8 [rows, groups], only for int4 and int8; if empty, all zero points are 8 (int4) or 128 (int8)
  View zeros = {};

  std::int64_t rows() const { return values.size(0); }
  std::int64_t cols() const {
    if (encoding == Encoding::plain) return values.size(1);
    const BlockShape block = block_shape(encoding);
    return values.size(1) / block.bytes * block.elements;
  }
  // Returns a view of the rows begin, begin + step, .., `count` in all.
  MatrixPart row_range(std::int64_t begin, std::int64_t count, std::int64_t step = 1) const {
    const auto of = [&](const View& view) {
      View rows = view.rows(begin, count == 0 ? 0 : (count - 1) * step + 1);
      rows.shape[0] = count;
      rows.stride[0] *= step;
      return rows;
    };
    MatrixPart part{encoding, of(values)};
    if (scales) part.scales = of(scales);
    if (zeros) part.zeros = of(zeros);
    return part;
  }
};

}  // namespace octavo
