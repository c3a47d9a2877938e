// Converts groups of keys to groups of values (kv_layout.h), for latent attention, by transposing 4 x 4
// squares in registers.
#pragma once

#include <cstdint>

#include "kernels/kinds.h"

namespace octavo::cpu {
namespace {

// Vector types that compilers map to the instruction set.
using Four32 = std::uint32_t __attribute__((vector_size(16)));
using Four64 = std::uint64_t __attribute__((vector_size(32)));
using Sixteen16 = std::uint16_t __attribute__((vector_size(32)));

// Computes to[j][i] = from[i][j]. Strides are in elements. convert() changes each vector after it is read.
template <class Vector, class Element, class Convert>
inline void transpose_square(const Element* from, std::int64_t from_stride, Element* to,
                             std::int64_t to_stride, Convert&& convert) {
  Vector row[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __builtin_memcpy(&row[i], from + i * from_stride, sizeof(Vector));
    convert(row[i]);
  }
  const Vector even01 = __builtin_shufflevector(row[0], row[1], 0, 4, 2, 6);
  const Vector odd01 = __builtin_shufflevector(row[0], row[1], 1, 5, 3, 7);
  const Vector even23 = __builtin_shufflevector(row[2], row[3], 0, 4, 2, 6);
  const Vector odd23 = __builtin_shufflevector(row[2], row[3], 1, 5, 3, 7);
  const Vector column[4] = {
      __builtin_shufflevector(even01, even23, 0, 1, 4, 5), __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5),
      __builtin_shufflevector(even01, even23, 2, 3, 6, 7), __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7)};
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) __builtin_memcpy(to + j * to_stride, &column[j], sizeof(Vector));
}

// Keys are [n][16 tokens] or, in bf16, [n / 2][16 tokens][2]. Values are [16 tokens][n] or, in bf16, [8
// pairs][n][2].
void values_of_keys(const void* keys, Format format, void* values, std::int64_t n) {
  constexpr int kTokens = 16;
  if (format == Format::f32) {
    const auto* from = static_cast<const std::uint32_t*>(keys);
    auto* to = static_cast<std::uint32_t*>(values);
    for (std::int64_t d = 0; d < n; d += 4)
      for (int t = 0; t < kTokens; t += 4)
        transpose_square<Four32>(from + d * kTokens + t, kTokens, to + t * n + d, n, [](Four32&) {});
  } else if (format == Format::bf16) {
    // A 64-bit word has two dimensions of two tokens. The conversion swaps the middle 16-bit numbers, so
    // that pairs of one token become pairs of one dimension.
    const auto* from = static_cast<const std::uint64_t*>(keys);
    auto* to = static_cast<std::uint64_t*>(values);
    const auto convert = [](Four64& words) {
      Sixteen16 halves;
      __builtin_memcpy(&halves, &words, sizeof words);
      halves = __builtin_shufflevector(halves, halves, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
      __builtin_memcpy(&words, &halves, sizeof words);
    };
    for (std::int64_t d = 0; d < n / 2; d += 4)
      for (int t = 0; t < kTokens / 2; t += 4)
        transpose_square<Four64>(from + d * (kTokens / 2) + t, kTokens / 2, to + t * (n / 2) + d, n / 2,
                                 convert);
  } else {
    const auto* from = static_cast<const std::uint16_t*>(keys);
    auto* to = static_cast<std::uint16_t*>(values);
    for (int t = 0; t < kTokens; ++t)
      for (std::int64_t d = 0; d < n; ++d) to[t * n + d] = from[d * kTokens + t];
  }
}

}  // namespace
}  // namespace octavo::cpu
