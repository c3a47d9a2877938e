// Layout of quantised weights for the integer product.
//
// Panels of `width` rows (two vectors of lanes) follow each other. A panel is a row of blocks, and a block is
// a header and its groups of 32 columns. Every field holds one item per row of the panel, side by side:
//   header   scale; min (or zero)                       of the block
//   group    scales, then mins, of its `subs` parts     where the format has two levels of scales
//            the low plane, the high plane of the codes
// The end of a header is aligned to a vector, so that no vector of codes crosses a cache line.
// A plane of b bits has 4 * b bytes per row. Byte i holds bits of the codes of columns 4 s + i, from its low
// end, for the 8 / b steps s = 0 .. 7 that share the byte.
//
// Files of single instruction sets include this header, so it has only data and compile-time functions (see
// isa.h).
#pragma once

#include <cstdint>

namespace octavo::cpu {

enum class QuantScales : std::uint8_t {
  f16,          // one f16 per block
  bf16,         // one bf16
  f16_min,      // two: scale * code - min
  bytes,        // f16 times a signed byte for each part
  bytes_min,    // the same twice, unsigned: scale and min
  nibbles_min,  // the same with both in one byte, scale in the low half
  f32,          // one f32 per block
  f32_zero,     // f32 and a byte per block: scale * (code - zero)
};

// Values of four-bit codes, named as in tensor/dequantize.h.
enum class QuantValues : std::uint8_t { codes, iq4, e2m1 };

struct QuantFormat {
  int low_bits;
  int high_bits = 0;
  int subs = 1;  // parts of a group with separate scales: 1 or 2
  QuantScales scales;
  int zero = 0;  // offset subtracted from every code, or the code's value
  QuantValues values = QuantValues::codes;
  int block_groups = 1;  // groups per block; 0: given by the matrix
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
  int4,
  int4_zero,
  int8,
  int8_zero,
  mxfp4,
};
constexpr int kQuantKinds = 16;

// Indexed by QuantKind.
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
     .block_groups = 8},                                                                   // q6_k
    {.low_bits = 4, .scales = QuantScales::f16, .zero = 128, .values = QuantValues::iq4},  // iq4_nl
    {.low_bits = 4, .scales = QuantScales::f32, .zero = 8, .block_groups = 0},             // int4
    {.low_bits = 4, .scales = QuantScales::f32_zero, .block_groups = 0},                   // int4_zero
    {.low_bits = 8, .scales = QuantScales::f32, .zero = 128, .block_groups = 0},           // int8
    {.low_bits = 8, .scales = QuantScales::f32_zero, .block_groups = 0},                   // int8_zero
    {.low_bits = 4,
     .scales = QuantScales::bf16,
     .zero = 12,
     .values = QuantValues::e2m1,
     .block_groups = 0},  // mxfp4
};

constexpr int kQuantGroup = 32;  // columns per group
// Number of groups of x that share a scale where no scale of the weights changes within them; otherwise one.
constexpr int kQuantShared = 4;

// `item_bytes` per row.
constexpr int quant_header_bytes(int width, int item_bytes) {
  const int vector = 2 * width;
  return (width * item_bytes + vector - 1) / vector * vector;
}

// Thirty-two columns of a row of x: code * scale, in one cache line. If groups share a scale, only the first
// one holds the other fields.
struct alignas(64) QuantX {
  std::int8_t codes[kQuantGroup];
  float scale;
  std::int32_t sums[3];  // sums of the codes with one scale: first half, second half, all
  float minus_sums[3];   // -scale * sums
};

}  // namespace octavo::cpu
