// The passes of the sample operator over a row of logits: plain loops, compiled for several instruction sets
// and selected at run time. All sets give the same bits.
#pragma once

#include <cstdint>

#include "kernels/sampling.h"

namespace octavo::cpu {

// Tokens per block of sums.
constexpr std::int64_t kSampleBlock = 128;

// maxima[b] = the greatest logit of block b. False if a logit is NaN.
bool block_maxima(const float* logits, std::int64_t count, float* maxima);

// masses[b] = the mass of the tokens of block b whose exponent is at least `least`. Returns the total.
std::uint64_t block_masses(const float* logits, std::int64_t count, const sampling::Softmax& softmax,
                           float least, std::uint64_t* masses);

// Number of logits greater than `bound`.
std::int64_t count_greater(const float* logits, std::int64_t count, float bound);

// Sets the logits of tokens whose bit is not set to minus infinity. `logits` starts at a multiple of 32
// tokens.
void apply_mask(float* logits, std::int64_t count, const std::uint32_t* bits);

}  // namespace octavo::cpu
