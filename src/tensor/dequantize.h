// Unpacks quantised numbers into codes and scales, and converts them to f32.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/code_values.h"
#include "tensor/encoding.h"

namespace octavo {

// Describes the blocks of an encoding. Element i of a block has the value
//   factor * scale * scales[i / group] * (v - zero) - min * mins[i / group],
// where v = kCodeValues[values][codes[i]], or v = codes[i] for CodeValues::codes. `scale` and `min` are f16
// numbers of the block. If a format has no `scales` or no `mins`, these are all 1. If it has no `min`, the
// second term is missing.
struct BlockTraits {
  int bits;
  int group;  // number of elements that share a scale
  int zero = 0;
  CodeValues values = CodeValues::codes;
  float factor = 1;
  // offset of the f16 scale in the block; -1: the scale is split over the last four u16 (IQ1_M)
  int scale_at = 0;
  int min_at = -1;  // offset of the f16 min; -1: the format has none
  bool has_min() const { return min_at >= 0; }
};
const BlockTraits& block_traits(Encoding encoding);  // `encoding` must be a GGUF encoding.

// Returns the table that maps codes to values, or nullptr if the values are the codes.
const std::uint8_t* values_of(Encoding encoding);

// Zero point of an int4, int8 or mxfp4 matrix without MatrixPart::zeros. For mxfp4, 12 is the entry of the
// value 0 in the table CodeValues::e2m1.
constexpr int zero_of(Encoding encoding) {
  return encoding == Encoding::int4 ? 8 : encoding == Encoding::mxfp4 ? 12 : 128;
}

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

// Converts one row to f32. `out` must have room for part.cols() numbers.
void dequantize(const MatrixPart& part, std::int64_t row, float* out);

}  // namespace octavo
