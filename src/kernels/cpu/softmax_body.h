// The softmax of attention, piece by piece (online softmax: Milakov and Gimelshein, 2018), for any
// instruction set S.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

constexpr float kNothing = -__builtin_inff();

template <class S>
void softmax(SoftmaxRow& row) {
  F<S> largest = S::set(kNothing);
  for (std::int64_t t = row.first; t < row.last; t += S::kLanes) {
    F<S> score = S::mul(S::load_f32(row.scores + t), S::set(row.scale));
    if (row.soft_cap > 0) score = soft_capped<S>(score, row.soft_cap);
    score = S::select(S::lanes_in(row.begin - t, row.end - t), score, S::set(kNothing));
    S::store_f32(row.scores + t, score);
    largest = S::max(score, largest);
  }
  row.maximum = S::maximum(largest);
  const F<S> m = S::set(row.maximum == kNothing ? 0 : row.maximum);
  F<S> sum = S::zero();
  for (std::int64_t t = row.first; t < row.last; t += S::kLanes) {
    const F<S> p = exp<S>(S::sub(S::load_f32(row.scores + t), m));
    sum = S::add(sum, p);
    store<S>(static_cast<std::byte*>(row.p) + t * bytes_of(row.p_format), row.p_format, p);
  }
  row.sum = S::sum(sum);
}

template <class S>
void merge(AttentionState& into, const AttentionState& from, std::int64_t n) {
  if (from.sum == 0) return;
  const float maximum = into.maximum > from.maximum ? into.maximum : from.maximum;
  const F<S> keep = exp<S>(S::set(into.maximum - maximum));
  const F<S> add = exp<S>(S::set(from.maximum - maximum));
  for (std::int64_t i = 0; i < n; i += S::kLanes)
    store<S>(into.values, Format::f32, i, n,
             S::fma(load<S>(from.values, Format::f32, i, n), add,
                    S::mul(load<S>(into.values, Format::f32, i, n), keep)));
  alignas(64) float sums[S::kLanes];
  S::store_f32(sums, S::fma(S::set(from.sum), add, S::mul(S::set(into.sum), keep)));
  into.sum = sums[0];
  into.maximum = maximum;
}

template <class S>
void finish(const AttentionState& state, Format format, void* out, std::int64_t n) {
  const F<S> scale = S::set(1.0f / state.sum);
  for (std::int64_t i = 0; i < n; i += S::kLanes)
    store<S>(out, format, i, n, S::mul(load<S>(state.values, Format::f32, i, n), scale));
}

}  // namespace
}  // namespace octavo::cpu
