// Copies numbers from the KV cache to tiles, for attention.cu and attention_latent.cu.
#pragma once

#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/mma.h"

namespace octavo::cuda {

constexpr int kTileRows = 16;  // rows per warp

// Converts the two fp8 numbers in the lower 16 bits to T. The conversion is exact, and NaN stays NaN.
template <class T>
__device__ inline std::uint32_t pair_of_f8(std::uint32_t codes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<std::uint16_t>(codes)));
  if constexpr (std::is_same_v<T, F16>) {
    return halves;
  } else {
    return pack<T>(to_float(F16{static_cast<std::uint16_t>(halves)}),
                   to_float(F16{static_cast<std::uint16_t>(halves >> 16)}));
  }
#else
  return pack<T>(to_float(F8{static_cast<std::uint8_t>(codes)}), to_float(F8{static_cast<std::uint8_t>(codes >> 8)}));
#endif
}

// Converts eight 4-bit codes and multiplies their levels by the scale of their vector.
template <class T>
__device__ inline uint4 unpack_levels(std::uint32_t codes, float scale) {
  const auto pair = [&](int i) {
    const auto number = [&](int shift) { return static_cast<float>(kv_level(codes >> shift & 15)) * scale; };
    return pack<T>(number(8 * i), number(8 * i + 4));
  };
  return {pair(0), pair(1), pair(2), pair(3)};
}

// Converts eight 8-bit numbers, or eight 4-bit codes in packed.x, and multiplies them by the scale of their
// vector.
template <class T>
__device__ inline uint4 unpack8(uint2 packed, Format format, float scale) {
  if (format == Format::levels) return unpack_levels<T>(packed.x, scale);
  if (format == Format::f8)
    return {pair_of_f8<T>(packed.x), pair_of_f8<T>(packed.x >> 16), pair_of_f8<T>(packed.y),
            pair_of_f8<T>(packed.y >> 16)};
  const auto number = [&](std::uint32_t word, int i) {  // subtracts 2^23 + 128, which is exact
    return (bits_to_float(0x4b000000 | ((word ^ 0x80808080) >> (8 * i) & 0xff)) - (0x1p23f + 128)) * scale;
  };
  const auto pair = [&](std::uint32_t word, int i) {
    return pack<T>(number(word, 2 * i), number(word, 2 * i + 1));
  };
  return {pair(packed.x, 0), pair(packed.x, 1), pair(packed.y, 0), pair(packed.y, 1)};
}

// not_finite() returns true if a number is infinite or NaN. finite() replaces infinite and NaN numbers in a
// packed pair by zero.
template <class T>
__device__ inline bool not_finite(std::uint16_t bits) {
  constexpr int kExponent = std::is_same_v<T, Bf16> ? 0x7f80 : 0x7c00;
  return (bits & kExponent) == kExponent;
}
template <class T>
__device__ inline std::uint32_t finite(std::uint32_t packed) {
  if (not_finite<T>(static_cast<std::uint16_t>(packed))) packed &= 0xffff0000;
  if (not_finite<T>(static_cast<std::uint16_t>(packed >> 16))) packed &= 0x0000ffff;
  return packed;
}

}  // namespace octavo::cuda
