// Dequantisation: converts quantised numbers to codes and scales, and to f32.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/code_values.h"
#include "tensor/encoding.h"

namespace octavo {

// Properties of an encoding's blocks. Element i of a block has the value
//   factor * scale * scales[i / group] * (v - zero) - min * mins[i / group],
// where v = kCodeValues[values][codes[i]], or v = codes[i] for CodeValues::codes. If the format has no
// scales or no mins, these are 1.
struct BlockTraits {
  int bits;   // bits of a code
  int group;  // numbers that share a scale
  int zero = 0;
  CodeValues values = CodeValues::codes;
  float factor = 1;
  int scale_at =
      0;  // offset of the f16 scale in the block; -1: its bits are in the last four u16, as IQ1_M has them
  int min_at = -1;  // offset of the f16 min; -1: the format has none
  bool has_min() const { return min_at >= 0; }
};
const BlockTraits& block_traits(Encoding encoding);  // encoding: a GGUF encoding

// Table from code to value; nullptr if the code is the value.
const std::uint8_t* values_of(Encoding encoding);

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

inline Float16 f16_at(const std::uint8_t* bytes) {
  return {static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8)};
}
Float16 scale_of(const BlockTraits& traits, const std::uint8_t* block);

// Converts row `row` of the part to f32 (cols() values), with exactly the format's formula.
void dequantize(const MatrixPart& part, std::int64_t row, float* out);

}  // namespace octavo
