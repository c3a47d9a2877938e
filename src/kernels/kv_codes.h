// The 4-bit format of keys and values (i4; vLLM's int4_per_token_head); all backends use it, also on GPUs.
//
// A vector has a scale that maps its largest magnitude to 127. Each code stands for one of 16 levels, which
// are those of the best quantiser for normally distributed numbers (Lloyd, 1982; Max, 1960). Keys have
// elements that are much larger than the others. So vectors are rotated first, which makes each element a sum
// of many elements (QuaRot; Ashkboos et al., 2024). Rotated queries and keys have the same products.
//
// The rotation multiplies by the Hadamard matrix of kv_rotation_size() elements and by kv_rotation_factor().
// It is its own inverse. In round r, the elements i and i + 2^r, where bit r of i is 0, become their sum and
// their difference. Every backend adds in this order, in f32, so that the results have the same bits.
#pragma once

#include <cstdint>

#include "kernels/on_device.h"

namespace octavo {

// Returns the code of i4 for value / scale. Bit 3 is the sign, and the other bits are the index of the
// magnitude.
OCTAVO_HOST_DEVICE constexpr unsigned kv_code(float value, float scale) {
  if (!(scale > 0)) return 0;
  const float size = (value < 0 ? -value : value) / scale;
  // The bounds are the means of neighbouring levels.
  const int index = (size >= 12) + (size >= 24.5f) + (size >= 37.5f) + (size >= 51) + (size >= 66.5f) +
                    (size >= 85.5f) + (size >= 111.5f);
  return static_cast<unsigned>(index) | (value < 0 ? 8u : 0u);
}

// Returns the number of a code of i4, without the scale: +-6, 18, 31, 44, 58, 75, 96 or 127.
OCTAVO_HOST_DEVICE constexpr int kv_level(unsigned code) {
  constexpr std::uint64_t kLevels = 0x7f604b3a2c1f1206;  // a byte for each magnitude
  const int size = static_cast<int>(kLevels >> (8 * (code & 7)) & 0xff);
  return (code & 8) != 0 ? -size : size;
}

// Returns the number of elements that are rotated together: the largest power of two that divides `dim`.
OCTAVO_HOST_DEVICE constexpr int kv_rotation_size(int dim) { return dim & -dim; }

// Returns the factor of a rotation of `size` elements, 1 / sqrt(size).
OCTAVO_HOST_DEVICE constexpr float kv_rotation_factor(int size) {
  float factor = 1;
  for (; size >= 4; size /= 4) factor /= 2;
  return size == 2 ? factor * 0.70710678f : factor;
}

}  // namespace octavo
