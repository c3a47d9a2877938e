// How quantised weights lie in memory for the integer product.
//
// Panels of `width` rows (two vectors of lanes) follow each other; a panel is a row of blocks, a block a
// header and its groups of 32 columns. Every field holds one item for each row of the panel, side by side:
//   header   scale; min (or zero)                       of the block
//   group    scales, then mins, of its `subs` parts     where the format has two levels of scales
//            the low plane, the high plane of the codes
// A header ends where a vector does, so that no vector of codes lies across two lines of a cache.
// A plane of b bits is b times four bytes a row: byte i of them holds, from its low end, bits of the codes of
// columns 4 s + i for those 8 / b steps s = 0 .. 7 that share the byte.
//
// This header goes into the files of single instruction sets: data, and what the compiler works out (see
// isa.h).
#pragma once

#include <cstdint>

namespace octavo::cpu {

enum class QuantScales : std::uint8_t {
  f16,          // one f16 a block
  f16_min,      // two: scale * code - min
  bytes,        // f16 times a signed byte for each part
  bytes_min,    // the same twice, unsigned: scale and min
  nibbles_min,  // the same with both in one byte, scale in the low half
  f32,          // one f32 a block
  f32_zero,     // and a byte: scale * (code - zero)
};

struct QuantFormat {
  int low_bits;
  int high_bits;
  int subs;  // parts of a group that have a scale of their own: 1 or 2
  QuantScales scales;
  int zero;          // what is taken from every code
  bool table;        // codes stand for kIq4Values
  int block_groups;  // groups in a block; 0: as the matrix has it
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
};
constexpr int kQuantKinds = 15;

constexpr QuantFormat kQuantFormats[kQuantKinds] = {
    {8, 0, 1, QuantScales::f16, 128, false, 1},     {4, 0, 1, QuantScales::f16, 8, false, 1},
    {4, 0, 1, QuantScales::f16_min, 0, false, 1},   {4, 1, 1, QuantScales::f16, 16, false, 1},
    {4, 1, 1, QuantScales::f16_min, 0, false, 1},   {2, 0, 2, QuantScales::nibbles_min, 0, false, 8},
    {2, 1, 2, QuantScales::bytes, 4, false, 8},     {4, 0, 1, QuantScales::bytes_min, 0, false, 8},
    {4, 1, 1, QuantScales::bytes_min, 0, false, 8}, {4, 2, 2, QuantScales::bytes, 32, false, 8},
    {4, 0, 1, QuantScales::f16, 128, true, 1},      {4, 0, 1, QuantScales::f32, 8, false, 0},
    {4, 0, 1, QuantScales::f32_zero, 0, false, 0},  {8, 0, 1, QuantScales::f32, 128, false, 0},
    {8, 0, 1, QuantScales::f32_zero, 0, false, 0},
};

constexpr int kQuantGroup = 32;  // columns of a group
// So many groups of x share a scale where no scale of the weights changes within them, else one.
constexpr int kQuantShared = 4;

// `item_bytes` for each row.
constexpr int quant_header_bytes(int width, int item_bytes) {
  const int vector = 2 * width;
  return (width * item_bytes + vector - 1) / vector * vector;
}

// Thirty-two columns of a row of x: code * scale. A cache line. Of groups that share a scale the first one
// has all but the codes.
struct alignas(64) QuantX {
  std::int8_t codes[kQuantGroup];
  float scale;
  std::int32_t sums[3];  // of the codes that share the scale: of the first half, of the second, of all
  float minus_sums[3];   // -scale * sums
};

}  // namespace octavo::cpu
