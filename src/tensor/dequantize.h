// Quantised numbers taken apart, and as f32.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/encoding.h"

namespace octavo {

// What the block formats of an encoding have in common: number i of a block is
//   scale * scales[i / group] * (v - zero) - min * mins[i / group],   v = codes[i], in IQ4_NL
//   kIq4Values[codes[i]]
// with scales and mins 1 where the format has none.
struct BlockTraits {
  int bits;   // of a code
  int group;  // numbers that share a scale
  int zero;
  bool has_min;
};
BlockTraits block_traits(Encoding encoding);  // one of GGUF's

// The 16 values of IQ4_NL, plus 128.
inline constexpr std::array<std::uint8_t, 16> kIq4Values = {1,   24,  45,  63,  79,  93,  106, 118,
                                                            129, 141, 153, 166, 181, 197, 217, 241};

// One block of GGUF, taken apart.
struct QuantBlock {
  std::array<std::uint8_t, 256> codes;
  Float16 scale;
  Float16 min;
  std::array<std::int8_t, 16> scales;
  std::array<std::int8_t, 16> mins;
};
void take_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block);

// Row `row` of the part as f32, cols() of them, exactly as the format defines them.
void dequantize(const MatrixPart& part, std::int64_t row, float* out);

}  // namespace octavo
