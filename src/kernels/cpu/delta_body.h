// A step of the gated delta rule, for any instruction set S. Each column of the state is a sum of its own,
// over the keys in order.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

// Columns [begin, begin + kVectors * lanes) of the state, or as many as there are.
template <class S, int kVectors>
void delta_columns(const DeltaStep& step, std::int64_t begin) {
  constexpr Format f32 = Format::f32;
  const auto column = [&](int v) { return begin + v * S::kLanes; };
  const F<S> decay = S::set(step.decay);
  F<S> held[kVectors], out[kVectors];
  for (int v = 0; v < kVectors; ++v) held[v] = out[v] = S::zero();
  const float* row = step.state;
  for (std::int64_t i = 0; i < step.keys; ++i, row += step.stride)
    for (int v = 0; v < kVectors; ++v)
      held[v] = S::fma(S::set(step.k[i]), load<S>(row, f32, column(v), step.columns), held[v]);
  for (int v = 0; v < kVectors; ++v) {
    const F<S> value = load<S>(step.v, f32, column(v), step.columns);
    held[v] = S::mul(S::set(step.beta), S::sub(value, S::mul(decay, held[v])));
  }
  float* to = step.state;
  for (std::int64_t i = 0; i < step.keys; ++i, to += step.stride)
    for (int v = 0; v < kVectors; ++v) {
      const F<S> before = S::mul(decay, load<S>(to, f32, column(v), step.columns));
      const F<S> after = S::fma(S::set(step.k[i]), held[v], before);
      store<S>(to, f32, column(v), step.columns, after);
      out[v] = S::fma(S::set(step.q[i]), after, out[v]);
    }
  for (int v = 0; v < kVectors; ++v) store<S>(step.out, f32, column(v), step.columns, out[v]);
}

template <class S>
void delta(const DeltaStep& step) {
  constexpr int kVectors = 4;
  std::int64_t begin = 0;
  for (; begin + kVectors * S::kLanes <= step.columns; begin += kVectors * S::kLanes)
    delta_columns<S, kVectors>(step, begin);
  for (; begin < step.columns; begin += S::kLanes) delta_columns<S, 1>(step, begin);
}

}  // namespace
}  // namespace octavo::cpu
