// The passes of the sample operator over a row of logits: plain loops, compiled for several instruction sets
// and chosen at run time. All of them give the same bits on all of these.
#pragma once

#include <cstdint>

#include "kernels/sampling.h"

namespace octavo::cpu {

// Rows are summed up in blocks of this many tokens.
constexpr std::int64_t kSampleBlock = 128;

// maxima[b] = the greatest logit of block b. False if there is a NaN.
bool block_maxima(const float* logits, std::int64_t count, float* maxima);

// masses[b] = the mass of block b, of tokens whose exponent is at least `least`. Returns their sum.
std::uint64_t block_masses(const float* logits, std::int64_t count, const sampling::Softmax& softmax,
                           float least, std::uint64_t* masses);

// How many logits are greater than `bound`.
std::int64_t count_greater(const float* logits, std::int64_t count, float bound);

// Minus infinity for tokens whose bit is not set. `logits` starts at a multiple of 32 tokens.
void apply_mask(float* logits, std::int64_t count, const std::uint32_t* bits);

}  // namespace octavo::cpu
