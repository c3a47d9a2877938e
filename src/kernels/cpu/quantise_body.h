// A row of x as codes for the integer product, for any instruction set S.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

// Codes are x / scale rounded to nearest, scale the largest magnitude / 127; a group without a number of at
// least 2^-100 is all zeros, one with a NaN or infinity all NaN.
template <class S>
void quantise_group(const F<S> (&x)[kQuantGroup / S::kLanes], QuantX& out) {
  constexpr int kVectors = kQuantGroup / S::kLanes;
  F<S> largest = S::zero(), strange = S::zero();  // NaN where x is not finite
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    largest = S::max(S::abs(x[v]), largest);
    strange = S::fma(x[v], S::zero(), strange);
  }
  out = {};
  if (S::sum(strange) != 0) {
    out.scale = __builtin_nanf("");
    return;
  }
  const float range = S::maximum(largest);
  if (range < 0x1p-100f) return;
  out.scale = range / 127;
  const F<S> inverse = S::set(127 / range);
  F<S> halves[2] = {S::zero(), S::zero()};
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const F<S> codes = S::round(S::mul(x[v], inverse));
    S::store_i8(out.codes + v * S::kLanes, codes);
    halves[2 * v / kVectors] = S::add(halves[2 * v / kVectors], codes);
  }
  const float sums[3] = {S::sum(halves[0]), S::sum(halves[1]), S::sum(S::add(halves[0], halves[1]))};
  for (int i = 0; i < 3; ++i) {
    out.sums[i] = static_cast<std::int32_t>(sums[i]);
    out.minus_sums[i] = -out.scale * sums[i];
  }
}

// n numbers, and zeros up to a whole group.
template <class S>
void quantise(const void* x, Format format, QuantX* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kQuantGroup) {
    F<S> group[kQuantGroup / S::kLanes];
#pragma GCC unroll 4
    for (int v = 0; v < kQuantGroup / S::kLanes; ++v) {
      const std::int64_t at = i + v * S::kLanes;
      group[v] = at < n ? load<S>(x, format, at, n) : S::zero();
    }
    quantise_group<S>(group, *out++);
  }
}

}  // namespace
}  // namespace octavo::cpu
