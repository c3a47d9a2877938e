// The online softmax of attention (Milakov and Gimelshein, 2018), which processes one piece at a time, for
// any instruction set S.
#pragma once

#include <algorithm>

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

constexpr float kNothing = -__builtin_inff();

constexpr float kLog2e = 1.44269504f;

// Caps the scores, sets the scores of masked tokens to minus infinity, and returns the largest score.
template <class S, bool kMasked, bool kCapped>
float prepare_scores(const SoftmaxRow& row) {
  F<S> largest = S::set(kNothing);
  for (std::int64_t t = row.first; t < row.last; t += S::kLanes) {
    F<S> score = S::load_f32(row.scores + t);
    if constexpr (kCapped) score = soft_capped<S>(S::mul(score, S::set(row.scale)), row.soft_cap);
    if constexpr (kMasked)
      score = S::select(S::lanes_in(row.begin - t, row.end - t), score, S::set(kNothing));
    if constexpr (kMasked || kCapped) S::store_f32(row.scores + t, score);
    largest = S::max(score, largest);
  }
  return S::maximum(largest);
}

template <class S>
float prepare_scores(const SoftmaxRow& row) {
  const bool masked = row.begin > row.first || row.end < row.last;
  if (row.soft_cap > 0)
    return masked ? prepare_scores<S, true, true>(row) : prepare_scores<S, false, true>(row);
  return masked ? prepare_scores<S, true, false>(row) : prepare_scores<S, false, false>(row);
}

// Computes p = 2^(log2(e) * scale * score - maximum).
template <class S, Format kFormat>
float probabilities(const SoftmaxRow& row, float scale, float maximum) {
  const F<S> factor = S::set(scale);
  const F<S> shift = S::set(-maximum);
  F<S> sum = S::zero();
  for (std::int64_t t = row.first; t < row.last; t += S::kLanes) {
    F<S> p = exp2<S>(S::fma(S::load_f32(row.scores + t), factor, shift));
    sum = S::add(sum, p);
    // A token with probability 0 may be invisible and its scale undefined, so the scale is not used. A NaN
    // probability is written as 0, but makes the sum NaN.
    if (row.value_scales != nullptr)
      p = S::select(S::less(S::zero(), p), S::mul(p, S::load_f32(row.value_scales + t)), S::zero());
    store<S>(static_cast<std::byte*>(row.p) + t * bytes_of(kFormat), kFormat, p);
  }
  return S::sum(sum);
}

template <class S>
void softmax(SoftmaxRow& row) {
  if (row.key_scales != nullptr)
    for (std::int64_t t = row.first; t < row.last; t += S::kLanes)
      S::store_f32(row.scores + t, S::mul(S::load_f32(row.scores + t), S::load_f32(row.key_scales + t)));
  if (row.slope != 0)
    for (std::int64_t t = row.first; t < row.last; ++t)
      row.scores[t] += row.slope * static_cast<float>(t - row.query);
  if (row.distance_bias != nullptr)
    for (std::int64_t t = row.first; t < row.last; ++t)
      row.scores[t] += row.distance_bias[std::clamp(t - row.position, -row.furthest, row.furthest)] / row.scale;
  const float largest = prepare_scores<S>(row);
  const float scale = row.soft_cap > 0 ? kLog2e : row.scale * kLog2e;
  row.maximum = largest * scale;
  const float shift = largest == kNothing ? 0 : row.maximum;
  row.sum = row.p_format == Format::bf16 ? probabilities<S, Format::bf16>(row, scale, shift)
                                         : probabilities<S, Format::f32>(row, scale, shift);
}

template <class S>
void merge(AttentionState& into, const AttentionState& from, std::int64_t n) {
  if (from.sum == 0) return;
  const float maximum = into.maximum > from.maximum ? into.maximum : from.maximum;
  const F<S> keep = exp2<S>(S::set(into.maximum - maximum));
  const F<S> add = exp2<S>(S::set(from.maximum - maximum));
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
