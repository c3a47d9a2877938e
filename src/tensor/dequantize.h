// Dequantisation: converts quantised numbers to codes and scales, and to f32.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/encoding.h"

namespace octavo {

// Properties of an encoding's blocks. Element i of a block has the value
//   scale * scales[i / group] * (v - zero) - min * mins[i / group],
// where v = values_of(encoding)[codes[i]], or v = codes[i] if values_of() is null. If the format has no
// scales or no mins, these are 1.
struct BlockTraits {
  int bits;   // bits of a code
  int group;  // numbers that share a scale
  int zero;
  bool has_min;
};
BlockTraits block_traits(Encoding encoding);  // encoding: a GGUF encoding

// The 16 values of IQ4_NL; 128 is added to each.
inline constexpr std::array<std::uint8_t, 16> kIq4Values = {1,   24,  45,  63,  79,  93,  106, 118,
                                                            129, 141, 153, 166, 181, 197, 217, 241};

// The 16 values of e2m1 (1 sign bit, 2 exponent bits, 1 fraction bit); each is doubled, then 12 is added.
inline constexpr std::array<std::uint8_t, 16> kE2m1Values = {12, 13, 14, 15, 16, 18, 20, 24,
                                                             12, 11, 10, 9,  8,  6,  4,  0};

// Table from code to value; nullptr if the code is the value.
constexpr const std::uint8_t* values_of(Encoding encoding) {
  return encoding == Encoding::iq4_nl  ? kIq4Values.data()
         : encoding == Encoding::mxfp4 ? kE2m1Values.data()
                                       : nullptr;
}

// Zero point of int4, int8 and mxfp4 if a part has no `zeros`.
constexpr int zero_of(Encoding encoding) {
  return encoding == Encoding::int4 ? 8 : encoding == Encoding::mxfp4 ? 12 : 128;
}

// One GGUF block as codes and scales.
struct QuantBlock {
  std::array<std::uint8_t, 256> codes;
  Float16 scale;
  Float16 min;
  std::array<std::int8_t, 16> scales;
  std::array<std::int8_t, 16> mins;
};
void take_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block);

// Converts row `row` of the part to f32 (cols() values), with exactly the format's formula.
void dequantize(const MatrixPart& part, std::int64_t row, float* out);

}  // namespace octavo
