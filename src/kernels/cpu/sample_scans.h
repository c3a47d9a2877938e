// The sample operator's passes over a row of logits. They are plain loops, which are compiled for several
// instruction sets and selected at run time. All instruction sets give the same bits.
#pragma once

#include <cstdint>

#include "kernels/sampling.h"

namespace octavo::cpu {

// tokens in a block of maxima or masses
constexpr std::int64_t kSampleBlock = 128;

// Sets maxima[b] to the greatest logit of block b. Returns false if a logit is NaN.
bool block_maxima(const float* logits, std::int64_t count, float* maxima);

// Sets masses[b] to the mass of the tokens in block b whose exponent is at least `least`. Returns the sum
// over all blocks.
std::uint64_t block_masses(const float* logits, std::int64_t count, const sampling::Softmax& softmax,
                           float least, std::uint64_t* masses);

std::int64_t count_greater(const float* logits, std::int64_t count, float bound);

// Sets the logits of tokens whose mask bit is 0 to minus infinity. The id of the token of logits[0] must be
// a multiple of 32.
void apply_mask(float* logits, std::int64_t count, const std::uint32_t* bits);

}  // namespace octavo::cpu
