// What attention on tensor cores shares (attention.cu, attention_latent.cu): numbers on their way from the cache to
// tiles.
#pragma once

#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/mma.h"

namespace octavo::cuda {

constexpr int kTileRows = 16;  // of a warp

// Eight numbers of the cache, those of 8 bits times their vector's scale.
template <class T>
__device__ inline uint4 load8(const std::byte* data, Format format, float scale) {
  if (format != Format::f8 && format != Format::q8) return *reinterpret_cast<const uint4*>(data);
  const uint2 packed = *reinterpret_cast<const uint2*>(data);
  const auto number = [&](std::uint32_t word, int i) {
    const auto bits = static_cast<std::uint8_t>(word >> (8 * i));
    return format == Format::f8 ? to_float(F8{bits}) : static_cast<float>(static_cast<signed char>(bits)) * scale;
  };
  const auto pair = [&](std::uint32_t word, int i) {
    return pack<T>(number(word, 2 * i), number(word, 2 * i + 1));
  };
  return {pair(packed.x, 0), pair(packed.x, 1), pair(packed.y, 0), pair(packed.y, 1)};
}

// Whether a number is infinite or NaN; and two packed numbers with such ones replaced by zero.
template <class T>
__device__ inline bool not_finite(std::uint16_t bits) {
  constexpr std::uint16_t kExponent = std::is_same_v<T, Bf16> ? 0x7f80 : 0x7c00;
  return (bits & kExponent) == kExponent;
}
template <class T>
__device__ inline std::uint32_t finite(std::uint32_t packed) {
  if (not_finite<T>(static_cast<std::uint16_t>(packed))) packed &= 0xffff0000;
  if (not_finite<T>(static_cast<std::uint16_t>(packed >> 16))) packed &= 0x0000ffff;
  return packed;
}

}  // namespace octavo::cuda
