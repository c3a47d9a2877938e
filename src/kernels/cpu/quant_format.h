// Layout of quantised weights for integer products.
//
// The matrix is a sequence of panels of `width` rows (two vectors). A panel is a sequence of blocks. A
// block is a header, then groups of 32 columns. Each of the following fields has one item for every row of
// the panel:
//
//   header   scale of the block, then its min (or zero)
//   group    scales, then mins, of its `subs` parts, if the format has two levels of scales;
//            then the low plane and the high plane of the codes
//
// The end of a header is aligned to a vector, so that no vector of codes crosses a cache line. A plane of b
// bits has b words of 4 bytes for each row. Byte i of a word has the bits of the columns 4 s + i for 8 / b
// consecutive steps s, the first step in the lowest bits. A step is four columns.
//
// Source files of single instruction sets include this header, so it contains only data and compile-time
// functions (see isa.h).
#pragma once

#include <cstdint>

#include "tensor/code_values.h"

namespace octavo::cpu {

enum class QuantScales : std::uint8_t {
  f16,          // one f16 per block
  bf16,         // one bf16 per block
  f16_min,      // two f16 per block: scale * code - min
  bytes,        // one f16 per block; each part has a signed byte that multiplies the f16
  bytes_min,    // two f16 per block (scale and min); each part has two unsigned bytes that multiply them
  nibbles_min,  // like bytes_min, with both numbers of a part in one byte; the low half is the scale
  f32,          // one f32 per block
  bf16_parts,   // no header; each part has one bf16
  f32_zero,     // an f32 and a byte per block: scale * (code - zero)
};

struct QuantFormat {
  int low_bits;
  int high_bits = 0;
  int subs = 1;  // 1 or 2; parts of a group with separate scales
  QuantScales scales;
  int zero = 0;  // subtracted from every code or, if `values` is a table, from the value of the code
  CodeValues values = CodeValues::codes;
  float factor = 1;      // multiplies the scale of every block
  // groups in a block; 0: codes and scales are separate, and the number depends on the matrix
  int block_groups = 1;

  constexpr bool two_levels() const {
    return scales == QuantScales::bytes || scales == QuantScales::bytes_min ||
           scales == QuantScales::nibbles_min || scales == QuantScales::bf16_parts;
  }
  // whether a block has a min or a zero point
  constexpr bool has_min() const {
    return scales == QuantScales::f16_min || scales == QuantScales::bytes_min ||
           scales == QuantScales::nibbles_min || scales == QuantScales::f32_zero;
  }
  // The next three functions return bytes per row: of a block's scale, of a block's min or zero point, and of
  // a group's scales and mins.
  constexpr int scale_bytes() const {
    if (scales == QuantScales::bf16_parts) return 0;
    return scales == QuantScales::f32 || scales == QuantScales::f32_zero ? 4 : 2;
  }
  constexpr int min_bytes() const { return scales == QuantScales::f32_zero ? 1 : has_min() ? 2 : 0; }
  constexpr int sub_bytes() const {
    if (!two_levels()) return 0;
    return scales == QuantScales::bytes_min || scales == QuantScales::bf16_parts ? 2 * subs : subs;
  }
};

enum class QuantKind : std::uint8_t {
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
  iq2,  // IQ2_S, IQ2_XS, IQ2_XXS
  iq1,  // IQ1_S, IQ1_M
  tq,   // TQ1_0, TQ2_0
  int4,
  int4_zero,
  int8,
  int8_zero,
  mxfp4,
  nvfp4,
  q1_0,
};
constexpr int kQuantKinds = 24;

// Index: QuantKind.
constexpr QuantFormat kQuantFormats[kQuantKinds] = {
    {.low_bits = 8, .scales = QuantScales::f16, .zero = 128},                           // q8_0
    {.low_bits = 4, .scales = QuantScales::f16, .zero = 8},                             // q4_0
    {.low_bits = 4, .scales = QuantScales::f16_min},                                    // q4_1
    {.low_bits = 4, .high_bits = 1, .scales = QuantScales::f16, .zero = 16},            // q5_0
    {.low_bits = 4, .high_bits = 1, .scales = QuantScales::f16_min},                    // q5_1
    {.low_bits = 2, .subs = 2, .scales = QuantScales::nibbles_min, .block_groups = 8},  // q2_k
    {.low_bits = 2,
     .high_bits = 1,
     .subs = 2,
     .scales = QuantScales::bytes,
     .zero = 4,
     .block_groups = 8},                                                                   // q3_k
    {.low_bits = 4, .scales = QuantScales::bytes_min, .block_groups = 8},                  // q4_k
    {.low_bits = 4, .high_bits = 1, .scales = QuantScales::bytes_min, .block_groups = 8},  // q5_k
    {.low_bits = 4,
     .high_bits = 2,
     .subs = 2,
     .scales = QuantScales::bytes,
     .zero = 32,
     .block_groups = 8},                                                                  // q6_k
    {.low_bits = 4, .scales = QuantScales::f16, .zero = 128, .values = CodeValues::iq4},  // iq4_nl
    {.low_bits = 4,
     .scales = QuantScales::bytes,
     .zero = 128,
     .values = CodeValues::iq4,
     .block_groups = 8},  // iq4_xs
    {.low_bits = 4,
     .scales = QuantScales::bytes,
     .zero = 16,
     .values = CodeValues::iq3_s,
     .block_groups = 8},  // iq3_s
    {.low_bits = 4,
     .scales = QuantScales::bytes,
     .zero = 64,
     .values = CodeValues::iq3_xxs,
     .factor = 0.25F,
     .block_groups = 8},  // iq3_xxs
    {.low_bits = 2,
     .high_bits = 1,
     .subs = 2,
     .scales = QuantScales::bytes,
     .zero = 44,
     .values = CodeValues::iq2,
     .factor = 0.125F,
     .block_groups = 8},  // iq2
    {.low_bits = 2,
     .high_bits = 1,
     .subs = 2,
     .scales = QuantScales::bytes,
     .zero = 9,
     .values = CodeValues::iq1,
     .factor = 0.125F,
     .block_groups = 8},                                                          // iq1
    {.low_bits = 2, .scales = QuantScales::f16, .zero = 1, .block_groups = 8},    // tq
    {.low_bits = 4, .scales = QuantScales::f32, .zero = 8, .block_groups = 0},    // int4
    {.low_bits = 4, .scales = QuantScales::f32_zero, .block_groups = 0},          // int4_zero
    {.low_bits = 8, .scales = QuantScales::f32, .zero = 128, .block_groups = 0},  // int8
    {.low_bits = 8, .scales = QuantScales::f32_zero, .block_groups = 0},          // int8_zero
    {.low_bits = 4,
     .scales = QuantScales::bf16,
     .zero = 12,
     .values = CodeValues::e2m1,
     .block_groups = 0},  // mxfp4
    {.low_bits = 4,
     .subs = 2,
     .scales = QuantScales::bf16_parts,
     .zero = 12,
     .values = CodeValues::e2m1,
     .block_groups = 0},  // nvfp4
    {.low_bits = 1,
     .scales = QuantScales::f16,
     .zero = 1,
     .values = CodeValues::sign,
     .block_groups = 4},  // q1_0
};

constexpr int kQuantGroup = 32;
// Number of groups that share a scale of x, if the scales of the weights do not change within these groups.
// Otherwise each group has a separate scale of x.
constexpr int kQuantShared = 4;

// Returns the size of a header in bytes. `item_bytes` is the number of bytes for one row.
constexpr int quant_header_bytes(int width, int item_bytes) {
  const int vector = 2 * width;
  return (width * item_bytes + vector - 1) / vector * vector;
}

// 32 columns of a row of x (code * scale), in one cache line. If groups share a scale, only the first group
// has the fields after the codes.
struct alignas(64) QuantX {
  std::int8_t codes[kQuantGroup];
  float scale;
  std::int32_t sums[3];  // sums of the codes that share the scale: first half, second half, total
  float minus_sums[3];   // -scale * sums
};

}  // namespace octavo::cpu
