// Operators on rows, for any instruction set S. Sums have a fixed order: first over the vectors of the row,
// then over the lanes.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

template <class S>
void widen(const void* x, Format format, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += S::kLanes) store<S>(out, Format::f32, i, n, load<S>(x, format, i, n));
}

template <class S>
void narrow(const float* x, const float* bias, Format format, void* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    F<S> value = load<S>(x, Format::f32, i, n);
    if (bias != nullptr) value = S::add(value, load<S>(bias, Format::f32, i, n));
    store<S>(out, format, i, n, value);
  }
}

template <class S>
void widen_packed(const void* x, Packed format, void* bf16, std::int64_t n) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(bf16);
  for (std::int64_t i = 0; i < n; i += 2 * S::kLanes) {
    const typename S::Pairs pairs = format == Packed::e4m3 ? S::pairs_e4m3(from + i) : S::pairs_i8(from + i);
    __builtin_memcpy(to + 2 * i, &pairs, sizeof pairs);
  }
}

alignas(16) constexpr std::int8_t kKvLevels[16] = {6,  18,  31,  44,  58,  75,  96,  127,
                                                   -6, -18, -31, -44, -58, -75, -96, -127};

template <class S>
void unfold(const void* codes, std::int64_t folded, void* bytes, std::int64_t n) {
  constexpr std::int64_t kStep = sizeof(typename S::Ints), kPart = 16;
  const auto* from = static_cast<const std::byte*>(codes);
  auto* to = static_cast<std::byte*>(bytes);
  for (std::int64_t i = 0; i < n / 2; i += kStep) {
    const typename S::Ints x = S::load_ints(from + i);
    const typename S::Ints halves[2] = {S::lookup(S::template bits<0, 15>(x), kKvLevels),
                                        S::lookup(S::template bits<4, 15>(x), kKvLevels)};
    for (std::int64_t part = 0; part < kStep; part += kPart) {
      std::byte* const first = to + (i + part) / folded * 2 * folded + (i + part) % folded;
      for (int half = 0; half < 2; ++half)
        __builtin_memcpy(first + half * folded, reinterpret_cast<const std::byte*>(&halves[half]) + part,
                         kPart);
    }
  }
}

// n must be a multiple of the number of lanes.
template <class S>
void add_scaled(const float* x, const float* scales, float* out, std::int64_t n, std::int64_t rows,
                std::int64_t out_stride) {
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    const F<S> scale = S::load_f32(scales + i);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const to = out + r * out_stride + i;
      S::store_f32(to, S::fma(S::load_f32(x + r * n + i), scale, S::load_f32(to)));
    }
  }
}

template <class S>
NormStats norm_stats(const void* x, Format format, std::int64_t n, NormKind kind, float eps) {
  if (kind == NormKind::affine) return {0, 1};
  float mean = 0;
  if (kind == NormKind::layer) {
    F<S> sum = S::zero();
    for (std::int64_t i = 0; i < n; i += S::kLanes) sum = S::add(sum, load<S>(x, format, i, n));
    mean = S::sum(sum) / static_cast<float>(n);
  }
  F<S> squares = S::zero();
  const F<S> m = S::set(mean);
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    F<S> d = S::sub(load<S>(x, format, i, n), m);
    d = S::select(S::lanes_in(0, n - i), d, S::zero());
    squares = S::fma(d, d, squares);
  }
  return {mean, 1.0f / __builtin_sqrtf(S::sum(squares) / static_cast<float>(n) + eps)};
}

// Computes (x - mean) * scale * weight + bias.
template <class S>
F<S> normalized(F<S> x, const NormRow& norm, NormStats stats, std::int64_t i, std::int64_t n) {
  if (norm.kind == NormKind::none) return x;
  x = S::mul(S::sub(x, S::set(stats.mean)), S::set(stats.scale));
  const F<S> weight = load<S>(norm.weight, Format::f32, i, n);
  if (norm.bias == nullptr) return S::mul(x, weight);
  return S::fma(x, weight, load<S>(norm.bias, Format::f32, i, n));
}

template <class S>
void add_norm(const AddNormRow& row) {
  const std::int64_t n = row.dim;
  if (row.delta != nullptr) {
    const NormStats stats =
        row.delta_norm.kind == NormKind::none
            ? NormStats{}
            : norm_stats<S>(row.delta, row.delta_format, n, row.delta_norm.kind, row.delta_norm.eps);
    const F<S> scale = S::set(row.delta_scale);
    for (std::int64_t i = 0; i < n; i += S::kLanes) {
      const F<S> delta =
          normalized<S>(load<S>(row.delta, row.delta_format, i, n), row.delta_norm, stats, i, n);
      store<S>(row.residual, Format::f32, i, n,
               S::fma(delta, scale, load<S>(row.residual, Format::f32, i, n)));
    }
  }
  if (row.residual_scale != 1)
    for (std::int64_t i = 0; i < n; i += S::kLanes)
      store<S>(row.residual, Format::f32, i, n,
               S::mul(load<S>(row.residual, Format::f32, i, n), S::set(row.residual_scale)));
  if (row.out == nullptr && !row.replace) return;
  const NormStats stats = row.norm.kind == NormKind::none
                              ? NormStats{}
                              : norm_stats<S>(row.residual, Format::f32, n, row.norm.kind, row.norm.eps);
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    const F<S> x = normalized<S>(load<S>(row.residual, Format::f32, i, n), row.norm, stats, i, n);
    if (row.replace) store<S>(row.residual, Format::f32, i, n, x);
    if (row.out != nullptr) store<S>(row.out, row.out_format, i, n, x);
  }
}

// Rotates pairs: (a, b) -> (a cos - b sin, b cos + a sin).
template <class S>
void rotate_halves(float* head, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; i += S::kLanes) {
    const F<S> a = load<S>(head, Format::f32, i, half);
    const F<S> b = load<S>(head + half, Format::f32, i, half);
    const F<S> c = load<S>(cos, Format::f32, i, half);
    const F<S> s = load<S>(sin, Format::f32, i, half);
    store<S>(head, Format::f32, i, half, S::fma(a, c, S::sub(S::zero(), S::mul(b, s))));
    store<S>(head + half, Format::f32, i, half, S::fma(b, c, S::mul(a, s)));
  }
}

template <class S>
void rotate_neighbours(float* head, const float* cos, const float* sin, std::int64_t pairs) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

template <class S>
void head(const HeadRow& row) {
  for (std::int64_t i = 0; i < row.dim; i += S::kLanes)
    store<S>(row.out, Format::f32, i, row.dim,
             normalized<S>(load<S>(row.x, row.format, i, row.dim), row.norm, row.stats, i, row.dim));
  if (row.interleaved) return rotate_neighbours<S>(row.out, row.cos, row.sin, row.rotary / 2);
  rotate_halves<S>(row.out, row.cos, row.sin, row.rotary / 2);
}

template <class S, Activation kind, Format format>
void activate_part(const void* x, const void* up, void* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    F<S> value = activation<S>(kind, load<S>(x, format, i, n));
    if (up != nullptr) value = S::mul(value, load<S>(up, format, i, n));
    store<S>(y, format, i, n, value);
  }
}

// Each activation has a loop for each format: a choice inside the loop costs up to 40 % more instructions.
template <class S, Activation kind>
void activate_as(const void* x, const void* up, Format format, void* y, std::int64_t n) {
  switch (format) {
    case Format::f32:
      return activate_part<S, kind, Format::f32>(x, up, y, n);
    case Format::bf16:
      return activate_part<S, kind, Format::bf16>(x, up, y, n);
    case Format::f16:
      return activate_part<S, kind, Format::f16>(x, up, y, n);
  }
}

template <class S>
[[gnu::noinline]] void swigluoai_part(const void* x, const void* up, Format format, const ActivateRule& rule,
                                      void* y, std::int64_t n) {
  const F<S> most = S::set(rule.limit), least = S::set(-rule.limit), alpha = S::set(-rule.alpha);
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    const F<S> gate = S::min(most, load<S>(x, format, i, n));
    const F<S> clamped = S::max(least, S::min(most, load<S>(up, format, i, n)));
    const F<S> gated = S::div(gate, S::add(S::set(1), exp<S>(S::mul(alpha, gate))));
    store<S>(y, format, i, n, S::mul(gated, S::add(clamped, S::set(1))));
  }
}

template <class S>
[[gnu::noinline]] void xielu_part(const void* x, Format format, const ActivateRule& rule, void* y,
                                  std::int64_t n) {
  const F<S> half = S::set(0.5f), above = S::set(rule.alpha), below = S::set(rule.limit);
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    const F<S> value = load<S>(x, format, i, n);
    const F<S> bent = S::sub(S::sub(exp<S>(S::min(S::set(-1e-6f), value)), S::set(1)), value);
    const F<S> curve =
        S::select(S::less(S::zero(), value), S::mul(above, S::mul(value, value)), S::mul(below, bent));
    store<S>(y, format, i, n, S::fma(half, value, curve));
  }
}

template <class S>
void activate_burst(const void* x, const void* up, Format format, const ActivateRule& rule, void* y,
                    std::int64_t n) {
  switch (rule.kind) {
    case Activation::silu:
      return activate_as<S, Activation::silu>(x, up, format, y, n);
    case Activation::gelu:
      return activate_as<S, Activation::gelu>(x, up, format, y, n);
    case Activation::gelu_tanh:
      return activate_as<S, Activation::gelu_tanh>(x, up, format, y, n);
    case Activation::relu:
      return activate_as<S, Activation::relu>(x, up, format, y, n);
    case Activation::relu_squared:
      return activate_as<S, Activation::relu_squared>(x, up, format, y, n);
    case Activation::sigmoid:
      return activate_as<S, Activation::sigmoid>(x, up, format, y, n);
    case Activation::tanh:
      return activate_as<S, Activation::tanh>(x, up, format, y, n);
    case Activation::softplus:
      return activate_as<S, Activation::softplus>(x, up, format, y, n);
    case Activation::swigluoai:
      return swigluoai_part<S>(x, up, format, rule, y, n);
    case Activation::xielu:
      return xielu_part<S>(x, format, rule, y, n);
  }
}

template <class S>
void activate(const void* x, const void* up, Format format, const ActivateRule& rule, void* y,
              std::int64_t n) {
  alignas(64) std::byte burst[kBurstBytes];
  const std::int64_t bytes = n * bytes_of(format);
  for (std::int64_t at = 0; at < bytes; at += kBurstBytes) {
    const std::int64_t count = bytes - at < kBurstBytes ? bytes - at : kBurstBytes;
    const std::byte* from = static_cast<const std::byte*>(x) + at;
    const std::byte* with = up == nullptr ? nullptr : static_cast<const std::byte*>(up) + at;
    activate_burst<S>(from, with, format, rule, burst, count / bytes_of(format));
    write_burst<S>(burst, static_cast<std::byte*>(y) + at, count);
  }
}

template <class S>
void scale_logits(float* x, float scale, float soft_cap, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += S::kLanes) {
    F<S> value = S::mul(load<S>(x, Format::f32, i, n), S::set(scale));
    if (soft_cap > 0) value = soft_capped<S>(value, soft_cap);
    store<S>(x, Format::f32, i, n, value);
  }
}

}  // namespace
}  // namespace octavo::cpu
