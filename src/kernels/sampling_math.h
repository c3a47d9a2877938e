// Arithmetic of the sample operator that must be identical in every backend: the mass (unnormalised
// probability) of a token, the mass that top_p keeps, the random point of a draw, and log-probabilities.
// Device code includes this header, so it includes almost nothing.
//
// The mass of a token is an integer, so sums of masses do not depend on the order of addition. Backends may
// split rows among threads, lanes and blocks, and still choose the same token.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/on_device.h"

namespace octavo {

// Lowest reported logprob, also for banned tokens. It is finite, because JSON has no infinity.
inline constexpr float kLogprobFloor = -9999.0f;

// Maximum vocabulary: the sum of masses of at most 2^40 each fits into 64 bits.
inline constexpr int kMaxVocab = 1 << 23;

}  // namespace octavo

namespace octavo::sampling {

// Returns exp(d) in units of 2^-40, for d <= 0; the result is 0 below about -28. The relative error is below
// 2e-7, plus one unit. The code has no branches and no fused multiply-adds, so that compilers vectorise it to
// the same bits everywhere.
OCTAVO_HOST_DEVICE inline std::uint64_t mass(float d) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Clamps d to -28.5, whose mass is 0. The bits of negative floats grow with their magnitude. Compilers
  // vectorise an integer minimum, but make a branch of a float minimum.
  d = std::bit_cast<float>(std::min(std::bit_cast<std::uint32_t>(d), std::bit_cast<std::uint32_t>(-28.5f)));
  const float shifted = d * kLog2E + kRound;
  const float whole = shifted - kRound;
  const float r = (d - whole * kLn2High) - whole * kLn2Low;
  float e = 1.0f / 5040;  // Taylor series of exp(r), |r| <= ln(2) / 2
  e = e * r + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  // The low bits of `shifted` are the integer `whole`; the shift removes the other bits.
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(e) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  const std::uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  return (mantissa << 17) >> (127 - (bits >> 23));
}

// Returns the smallest mass whose share of `total` is at least top_p.
OCTAVO_HOST_DEVICE inline std::uint64_t mass_to_keep(float top_p, std::uint64_t total) {
  const double share = std::ceil(static_cast<double>(top_p) * static_cast<double>(total));
  return share >= static_cast<double>(total) ? total
                                             : std::max<std::uint64_t>(static_cast<std::uint64_t>(share), 1);
}

// Returns a random point in [0, total). Masses are added in the order of token ids; the drawn token is the
// first one at which the sum exceeds the point.
OCTAVO_HOST_DEVICE inline std::uint64_t drawn_point(std::int64_t random, std::uint64_t total) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{static_cast<std::uint64_t>(random)} * total) >> 64);
}

// A token. before() gives the sampling order: greater logits first; of equal logits, lower ids first.
struct Candidate {
  float logit;
  std::int32_t id;
  std::uint64_t mass;
};
OCTAVO_HOST_DEVICE inline bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Softmax of a row. exponent() is relative to the greatest logit, and `total` is the sum of the masses of
// all tokens.
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

}  // namespace octavo::sampling
