// Steps of recurrent layers, for any instruction set S. Each column of a state is summed over the rows in
// order, independently of other columns.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

// Processes the state columns from `begin` to begin + kVectors * lanes, or to the last column.
template <class S, int kVectors, bool kCorrects, bool kByRow>
void delta_columns(const DeltaStep& step, std::int64_t begin) {
  constexpr Format f32 = Format::f32;
  const auto column = [&](int v) { return begin + v * S::kLanes; };
  const F<S> decay = S::set(kByRow ? 1 : step.decay);
  F<S> held[kVectors], out[kVectors];
  for (int v = 0; v < kVectors; ++v) held[v] = out[v] = S::zero();
  const float* row = step.state;
  for (std::int64_t i = 0; kCorrects && i < step.keys; ++i, row += step.stride)
    for (int v = 0; v < kVectors; ++v)
      held[v] = S::fma(S::set(kByRow ? step.k[i] * step.decays[i] : step.k[i]),
                       load<S>(row, f32, column(v), step.columns), held[v]);
  for (int v = 0; v < kVectors; ++v) {
    const F<S> value = load<S>(step.v, f32, column(v), step.columns);
    held[v] = S::mul(S::set(step.beta), S::sub(value, S::mul(decay, held[v])));
  }
  float* to = step.state;
  for (std::int64_t i = 0; i < step.keys; ++i, to += step.stride)
    for (int v = 0; v < kVectors; ++v) {
      const F<S> before =
          S::mul(kByRow ? S::set(step.decays[i]) : decay, load<S>(to, f32, column(v), step.columns));
      const F<S> after = S::fma(S::set(step.k[i]), held[v], before);
      store<S>(to, f32, column(v), step.columns, after);
      out[v] = S::fma(S::set(step.q[i]), after, out[v]);
    }
  for (int v = 0; v < kVectors; ++v) store<S>(step.out, f32, column(v), step.columns, out[v]);
}

template <class S, bool kCorrects, bool kByRow>
void delta_all(const DeltaStep& step) {
  constexpr int kVectors = 4;
  std::int64_t begin = 0;
  for (; begin + kVectors * S::kLanes <= step.columns; begin += kVectors * S::kLanes)
    delta_columns<S, kVectors, kCorrects, kByRow>(step, begin);
  for (; begin < step.columns; begin += S::kLanes) delta_columns<S, 1, kCorrects, kByRow>(step, begin);
}

template <class S>
void delta(const DeltaStep& step) {
  if (step.decays != nullptr) return delta_all<S, true, true>(step);
  step.corrects ? delta_all<S, true, false>(step) : delta_all<S, false, false>(step);
}

// Processes the state columns from `begin` to begin + kVectors * lanes, or to the last column.
template <class S, int kVectors>
void wkv_columns(const WkvStep& step, std::int64_t begin) {
  constexpr Format f32 = Format::f32;
  const auto column = [&](int v) { return begin + v * S::kLanes; };
  F<S> held[kVectors], value[kVectors], out[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    held[v] = out[v] = S::zero();
    value[v] = load<S>(step.v, f32, column(v), step.dim);
  }
  const float* row = step.state;
  for (std::int64_t i = 0; i < step.dim; ++i, row += step.dim)
    for (int v = 0; v < kVectors; ++v)
      held[v] = S::fma(S::set(step.unit[i]), load<S>(row, f32, column(v), step.dim), held[v]);
  float* to = step.state;
  for (std::int64_t i = 0; i < step.dim; ++i, to += step.dim)
    for (int v = 0; v < kVectors; ++v) {
      const F<S> kept = S::mul(S::set(step.decays[i]), load<S>(to, f32, column(v), step.dim));
      const F<S> erased = S::fma(S::set(-step.erased[i]), held[v], kept);
      const F<S> after = S::fma(S::set(step.k[i]), value[v], erased);
      store<S>(to, f32, column(v), step.dim, after);
      out[v] = S::fma(S::set(step.r[i]), after, out[v]);
    }
  for (int v = 0; v < kVectors; ++v) store<S>(step.out, f32, column(v), step.dim, out[v]);
}

template <class S>
void wkv(const WkvStep& step) {
  constexpr int kVectors = 4;
  std::int64_t begin = 0;
  for (; begin + kVectors * S::kLanes <= step.dim; begin += kVectors * S::kLanes)
    wkv_columns<S, kVectors>(step, begin);
  for (; begin < step.dim; begin += S::kLanes) wkv_columns<S, 1>(step, begin);
}

template <class S>
void channel_step(const ChannelStep& step) {
  constexpr Format f32 = Format::f32;
  for (std::int64_t at = 0; at < step.channels; at += S::kLanes) {
    const auto read = [&](const float* row) { return load<S>(row, f32, at, step.channels); };
    const F<S> time = read(step.step), in = S::mul(time, read(step.x));
    F<S> out = S::zero();
    for (std::int64_t i = 0; i < step.numbers; ++i) {
      float* const row = step.state + i * step.stride;
      const F<S> decay = exp<S>(S::mul(time, read(step.rates + i * step.rate_stride)));
      const F<S> sum = S::fma(S::set(step.b[i]), in, S::mul(decay, read(row)));
      store<S>(row, f32, at, step.channels, sum);
      out = S::fma(S::set(step.c[i]), sum, out);
    }
    store<S>(step.out, f32, at, step.channels, out);
  }
}

}  // namespace
}  // namespace octavo::cpu
