// Rotary embeddings (Su et al., "RoFormer", 2021) and the ways to stretch them.
//
// Pair i of rotary_dim elements rotates by position * frequency(i); unscaled, frequency(i) is
// theta^(-2i / rotary_dim).
//
// - linear: position interpolation (Chen et al., 2023; kaiokendev). Frequencies are divided by the factor.
// - dynamic: NTK-aware scaling (bloc97, emozilla, 2023). Theta grows with the length.
// - llama3: Llama 3.1. Low frequencies are divided by the factor, high ones stay, between them is a blend.
// - yarn: Peng et al., 2023. A ramp over the pairs leads from divided to unchanged; cos and sin are scaled.
// - longrope: Ding et al., 2024. Each pair has a divisor, one for short and one for long contexts; cos and
//   sin are scaled.
//
// Two of these depend on the length of the context. transformers decides by the current sequence. There,
// the same prompt gets another output in a longer conversation, and cached keys become wrong. Octavo
// decides once, by the longest sequence that the model is loaded for (max_model_len). dynamic stretches for
// that length; longrope uses its long divisors if it exceeds the length of training.
#pragma once

#include <vector>

#include "model/spec.h"

namespace octavo {

// Angle per position of each pair, [rotary_dim / 2]. A step rotates its tokens by them: AnglesArgs of
// kernels/ops.h.
std::vector<float> rope_frequencies(const RopeSpec& rope, int max_model_len);

// Factor at each position in [0, positions).
std::vector<float> temperatures(const Temperature& temperature, int positions);

}  // namespace octavo
