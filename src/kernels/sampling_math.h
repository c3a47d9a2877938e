// The arithmetic of the sample operator that every backend must do alike: which mass a token has, how much of
// it top_p keeps, which point a draw hits, what a log-probability is. For devices, too: this header stands on
// nothing.
//
// The mass of a token is an integer. Integers add up to the same sum in any order, so rows may be cut into
// pieces for threads, lanes and blocks as each backend likes, and all of them still choose the same token.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/on_device.h"

namespace octavo {

// The least log-probability that is ever reported: of a banned token, too. Finite, because JSON knows no
// infinity.
inline constexpr float kLogprobFloor = -9999.0f;

// The most tokens that can be told apart: the sum of their masses, at most 2^40 each, fits 64 bits.
inline constexpr int kMaxVocab = 1 << 23;

}  // namespace octavo

namespace octavo::sampling {

// exp(d) in units of 2^-40, for d <= 0; 0 below about -28. Off by less than 2e-7 of itself, plus one unit.
// Branch-free and without fused multiply-adds, so that it vectorises to the same bits everywhere.
OCTAVO_HOST_DEVICE inline std::uint64_t mass(float d) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Not below -28.5, whose mass is 0. Negative floats grow in size with their bits, and a minimum of integers
  // vectorises where a choice between floats becomes a branch.
  d = std::bit_cast<float>(std::min(std::bit_cast<std::uint32_t>(d), std::bit_cast<std::uint32_t>(-28.5f)));
  const float shifted = d * kLog2E + kRound;
  const float whole = shifted - kRound;
  const float r = (d - whole * kLn2High) - whole * kLn2Low;
  float e = 1.0f / 5040;  // the Taylor series of exp(r), |r| <= ln(2) / 2
  e = e * r + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  // The low bits of `shifted` hold `whole`; the rest leaves the word at the top.
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(e) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  const std::uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  return (mantissa << 17) >> (127 - (bits >> 23));
}

// The least mass that makes up the share top_p of `total`.
OCTAVO_HOST_DEVICE inline std::uint64_t mass_to_keep(float top_p, std::uint64_t total) {
  const double share = std::ceil(static_cast<double>(top_p) * static_cast<double>(total));
  return share >= static_cast<double>(total) ? total
                                             : std::max<std::uint64_t>(static_cast<std::uint64_t>(share), 1);
}

// A point in [0, total): the token is the first by id at which the cumulative mass exceeds it.
OCTAVO_HOST_DEVICE inline std::uint64_t drawn_point(std::int64_t random, std::uint64_t total) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{static_cast<std::uint64_t>(random)} * total) >> 64);
}

// The order of tokens: greater logit first, then lower id.
struct Candidate {
  float logit;
  std::int32_t id;
  std::uint64_t mass;
};
OCTAVO_HOST_DEVICE inline bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// How a row's logits become probabilities: the exponent d of a logit, and the total mass of all.
struct Softmax {
  float max = 0;
  float inverse_temperature = 1;
  std::uint64_t total = 0;

  OCTAVO_HOST_DEVICE float exponent(float logit) const { return (logit - max) * inverse_temperature; }
  OCTAVO_HOST_DEVICE std::uint64_t mass(float logit) const { return sampling::mass(exponent(logit)); }
  OCTAVO_HOST_DEVICE float logprob(float logit) const {
    const double d = (static_cast<double>(logit) - max) * inverse_temperature;
    const double p = d - std::log(std::ldexp(static_cast<double>(total), -40));
    const auto value = static_cast<float>(std::min(p, 0.0));
    return value < kLogprobFloor ? kLogprobFloor : value;
  }
};

// min_p as a bound on the exponent.
OCTAVO_HOST_DEVICE inline float least_exponent(float min_p) {
  return min_p > 0 ? static_cast<float>(std::log(static_cast<double>(min_p))) : -INFINITY;
}

}  // namespace octavo::sampling
