// Quantises a row of x for integer products, for any instruction set S.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

// Quantises groups that share a scale. A code is x / scale, rounded to nearest, and the scale is the largest
// magnitude / 127. If the largest magnitude is below 2^-100, scale and codes are zero. If an element is NaN
// or infinite, the scale is NaN.
template <class S, int kShared>
void quantise_groups(const F<S> (&x)[kShared * kQuantGroup / S::kLanes], QuantX* out) {
  constexpr int kVectors = kShared * kQuantGroup / S::kLanes;
  // `strange` is NaN in lanes where x is not finite, and 0 in other lanes
  F<S> largest = S::zero(), strange = S::zero();
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    largest = S::max(S::abs(x[v]), largest);
    strange = S::fma(x[v], S::zero(), strange);
  }
  for (int g = 0; g < kShared; ++g) out[g] = {};
  if (S::sum(strange) != 0) {
    out->scale = __builtin_nanf("");
    return;
  }
  const float range = S::maximum(largest);
  if (range < 0x1p-100f) return;
  out->scale = range / 127;
  const F<S> inverse = S::set(127 / range);
  F<S> halves[2] = {S::zero(), S::zero()};
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const F<S> codes = S::round(S::mul(x[v], inverse));
    const int column = v * S::kLanes;
    S::store_i8(out[column / kQuantGroup].codes + column % kQuantGroup, codes);
    halves[2 * v / kVectors] = S::add(halves[2 * v / kVectors], codes);
  }
  const float sums[3] = {S::sum(halves[0]), S::sum(halves[1]), S::sum(S::add(halves[0], halves[1]))};
  for (int i = 0; i < 3; ++i) {
    out->sums[i] = static_cast<std::int32_t>(sums[i]);
    out->minus_sums[i] = -out->scale * sums[i];
  }
}

template <class S, int kShared>
void quantise_row(const void* x, Format format, QuantX* out, std::int64_t n) {
  constexpr int kColumns = kShared * kQuantGroup;
  constexpr int kBurst = kBurstBytes / sizeof(QuantX);
  QuantX burst[kBurst];
  int filled = 0;
  for (std::int64_t i = 0; i < n; i += kColumns) {
    F<S> numbers[kColumns / S::kLanes];
#pragma GCC unroll 16
    for (int v = 0; v < kColumns / S::kLanes; ++v) {
      const std::int64_t at = i + v * S::kLanes;
      numbers[v] = at < n ? load<S>(x, format, at, n) : S::zero();
    }
    quantise_groups<S, kShared>(numbers, burst + filled);
    filled += kShared;
    if (filled < kBurst && i + kColumns < n) continue;
    write_burst<S>(burst, out, filled * static_cast<std::int64_t>(sizeof(QuantX)));
    out += filled;
    filled = 0;
  }
}

// Quantises n numbers, and pads the last groups with zeros. `shared` is the number of groups that share a
// scale, 1 or kQuantShared.
template <class S>
void quantise(const void* x, Format format, QuantX* out, std::int64_t n, std::int64_t shared) {
  shared == 1 ? quantise_row<S, 1>(x, format, out, n) : quantise_row<S, kQuantShared>(x, format, out, n);
}

}  // namespace
}  // namespace octavo::cpu
