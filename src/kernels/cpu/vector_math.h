// Mathematical functions of vectors, for any instruction set S.
#pragma once

#include "kernels/cpu/isa.h"

namespace octavo::cpu {
namespace {

template <class S>
using F = typename S::F;

constexpr std::int64_t bytes_of(Format format) { return format == Format::f32 ? 4 : 2; }

template <class S>
F<S> load(const void* p, Format format) {
  switch (format) {
    case Format::f32:
      return S::load_f32(p);
    case Format::bf16:
      return S::load_bf16(p);
    case Format::f16:
      return S::load_f16(p);
  }
  return S::zero();
}

template <class S>
void store(void* p, Format format, F<S> x) {
  switch (format) {
    case Format::f32:
      return S::store_f32(p, x);
    case Format::bf16:
      return S::store_bf16(p, x);
    case Format::f16:
      return S::store_f16(p, x);
  }
}

// Loads the elements [i, i + lanes) of n elements. After the end, load() gives 0 and store() writes
// nothing.
template <class S>
F<S> load(const void* p, Format format, std::int64_t i, std::int64_t n) {
  const std::byte* from = static_cast<const std::byte*>(p) + i * bytes_of(format);
  if (i + S::kLanes <= n) return load<S>(from, format);
  alignas(64) std::byte padded[S::kLanes * 4] = {};
  __builtin_memcpy(padded, from, static_cast<std::size_t>((n - i) * bytes_of(format)));
  return load<S>(padded, format);
}

template <class S>
void store(void* p, Format format, std::int64_t i, std::int64_t n, F<S> x) {
  std::byte* to = static_cast<std::byte*>(p) + i * bytes_of(format);
  if (i + S::kLanes <= n) return store<S>(to, format, x);
  alignas(64) std::byte padded[S::kLanes * 4];
  store<S>(padded, format, x);
  __builtin_memcpy(to, padded, static_cast<std::size_t>((n - i) * bytes_of(format)));
}

// Computes e^x. The result is below 2e-38 for x < -88, infinity above 88.7, NaN for NaN, and exactly 1 for
// 0. Range reduction and polynomial are as in Cephes (Moshier, 1989); the error is below 2 units in the
// last place.
template <class S>
F<S> exp(F<S> x) {
  x = S::max(S::set(S::kVanishing * 0.69f), S::min(S::set(88.8f), x));
  const F<S> n = S::round(S::mul(x, S::set(1.44269504f)));
  F<S> r = S::fma(n, S::set(-0.693359375f), x);
  r = S::fma(n, S::set(2.12194440e-4f), r);
  F<S> p = S::set(1.9875691500e-4f);
  p = S::fma(p, r, S::set(1.3981999507e-3f));
  p = S::fma(p, r, S::set(8.3334519073e-3f));
  p = S::fma(p, r, S::set(4.1665795894e-2f));
  p = S::fma(p, r, S::set(1.6666665459e-1f));
  p = S::fma(p, r, S::set(5.0000001201e-1f));
  p = S::fma(p, S::mul(r, r), S::add(r, S::set(1)));
  return S::times_pow2(p, n);
}

// Computes 2^x. The result is exactly 0 for minus infinity, exactly 1 for 0, and NaN for NaN. Requires x
// below 127. The polynomial is as in Cephes.
template <class S>
F<S> exp2(F<S> x) {
  x = S::max(S::set(S::kVanishing), x);
  const F<S> n = S::round(x);
  const F<S> r = S::sub(x, n);
  F<S> p = S::set(1.535336188319500e-4f);
  p = S::fma(p, r, S::set(1.339887440266574e-3f));
  p = S::fma(p, r, S::set(9.618437357674640e-3f));
  p = S::fma(p, r, S::set(5.550332471162809e-2f));
  p = S::fma(p, r, S::set(2.402264791363012e-1f));
  p = S::fma(p, r, S::set(6.931472028550421e-1f));
  p = S::fma(p, r, S::set(1));
  return S::times_pow2(p, n);
}

// Computes tanh: near 0 with the odd polynomial of Cephes, otherwise as 1 - 2 / (e^2|x| + 1).
template <class S>
F<S> tanh(F<S> x) {
  const F<S> a = S::abs(x);
  const F<S> far = S::sub(S::set(1), S::div(S::set(2), S::add(exp<S>(S::add(a, a)), S::set(1))));
  const F<S> z = S::mul(x, x);
  F<S> p = S::set(-5.70498872745e-3f);
  p = S::fma(p, z, S::set(2.06390887954e-2f));
  p = S::fma(p, z, S::set(-5.37397155531e-2f));
  p = S::fma(p, z, S::set(1.33314422036e-1f));
  p = S::fma(p, z, S::set(-3.33332819422e-1f));
  const F<S> near = S::fma(S::mul(p, z), x, x);
  return S::select(S::less(a, S::set(0.625f)), near, S::with_sign_of(x, far));
}

// Computes erfc(|x|) as in Abramowitz and Stegun 7.1.26, with an absolute error below 1.5e-7.
template <class S>
F<S> erfc_of_magnitude(F<S> x) {
  const F<S> a = S::abs(x);
  const F<S> t = S::div(S::set(1), S::fma(a, S::set(0.3275911f), S::set(1)));
  F<S> p = S::set(1.061405429f);
  p = S::fma(p, t, S::set(-1.453152027f));
  p = S::fma(p, t, S::set(1.421413741f));
  p = S::fma(p, t, S::set(-0.284496736f));
  p = S::fma(p, t, S::set(0.254829592f));
  return S::mul(S::mul(p, t), exp<S>(S::sub(S::zero(), S::mul(a, a))));
}

// Computes log(1 + e^x) as max(x, 0) + log(1 + u), where u = e^-|x|. With z = u / (2 + u), at most 1/3, the
// series of log(1 + u) = 2 atanh(z) ends after z^15 with a relative error below 2e-9.
template <class S>
F<S> softplus(F<S> x) {
  const F<S> u = exp<S>(S::sub(S::zero(), S::abs(x)));
  const F<S> z = S::div(u, S::add(S::set(2), u));
  const F<S> squared = S::mul(z, z);
  F<S> p = S::set(1.0f / 15);
  for (const float divisor : {13.0f, 11.0f, 9.0f, 7.0f, 5.0f, 3.0f, 1.0f})
    p = S::fma(p, squared, S::set(1 / divisor));
  return S::fma(p, S::add(z, z), S::max(S::zero(), x));
}

template <class S>
F<S> activation(Activation kind, F<S> x) {
  switch (kind) {
    case Activation::silu:
      return S::div(x, S::add(S::set(1), exp<S>(S::sub(S::zero(), x))));
    case Activation::gelu: {
      const F<S> half_tail = S::mul(S::set(0.5f), erfc_of_magnitude<S>(S::mul(x, S::set(0.70710678f))));
      const F<S> below = S::select(S::less(x, S::zero()), half_tail, S::sub(S::set(1), half_tail));
      return S::mul(x, below);
    }
    case Activation::gelu_tanh: {
      const F<S> inner = S::mul(S::set(0.79788456f), S::fma(S::mul(S::mul(x, x), x), S::set(0.044715f), x));
      return S::mul(S::mul(S::set(0.5f), x), S::add(S::set(1), tanh<S>(inner)));
    }
    case Activation::relu:
      return S::max(S::zero(), x);
    case Activation::relu_squared: {
      const F<S> above = S::max(S::zero(), x);
      return S::mul(above, above);
    }
    case Activation::sigmoid:
      return S::div(S::set(1), S::add(S::set(1), exp<S>(S::sub(S::zero(), x))));
    case Activation::tanh:
      return tanh<S>(x);
    case Activation::softplus:
      return softplus<S>(x);
    case Activation::swigluoai:
    case Activation::xielu:
      break;
  }
  return x;
}

template <class S>
F<S> soft_capped(F<S> x, float cap) {
  return S::mul(S::set(cap), tanh<S>(S::div(x, S::set(cap))));
}

// All threads read the results, so other cores may have copies of the cache lines that a thread writes. A
// write waits until these copies are invalid, but consecutive writes wait together. So a thread collects its
// results in a buffer of this size, and then writes them in one burst.
constexpr std::int64_t kBurstBytes = 4096;
template <class S>
void write_burst(const void* from, void* to, std::int64_t bytes) {
  constexpr std::int64_t kVector = sizeof(F<S>);
  std::int64_t at = 0;
  for (; at + kVector <= bytes; at += kVector)
    S::store_f32(static_cast<std::byte*>(to) + at, S::load_f32(static_cast<const std::byte*>(from) + at));
  for (; at < bytes; ++at) static_cast<std::byte*>(to)[at] = static_cast<const std::byte*>(from)[at];
}

}  // namespace
}  // namespace octavo::cpu
