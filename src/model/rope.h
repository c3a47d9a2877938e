// Rotary embeddings (Su et al., "RoFormer", 2021), and methods to extend them to longer contexts.
//
// Pair i of rotary_dim elements is rotated by position * frequency(i). Without scaling, frequency(i) is
// theta^(-2i / rotary_dim).
//
// - linear: position interpolation (Chen et al., 2023; kaiokendev). Frequencies are divided by the factor.
// - dynamic: NTK-aware scaling (bloc97, emozilla, 2023). Theta grows with the length.
// - llama3: Llama 3.1. Low frequencies are divided by the factor, high ones do not change; in between, both
//   are blended.
// - yarn: Peng et al., 2023. A ramp over the pairs leads from unchanged to divided frequencies. cos and sin
//   are scaled.
// - longrope: Ding et al., 2024. Each pair has a divisor for short and one for long contexts. cos and sin are
//   scaled.
//
// dynamic and longrope depend on the context length. transformers uses the length of the current sequence.
// Therefore a prompt has another output in a longer conversation, and cached keys become wrong. Octavo uses
// the length of the longest sequence that the model is loaded for (max_model_len). dynamic scales for this
// length; longrope uses the long divisors if this length exceeds the training length.
#pragma once

#include <vector>

#include "model/spec.h"

namespace octavo {

// Returns the angle per position for each pair, [rotary_dim / 2]. A step rotates its tokens by these angles:
// see AnglesArgs in kernels/ops.h.
std::vector<float> rope_frequencies(const RopeSpec& rope, int max_model_len);

// Returns the temperature factor at each position in [0, positions).
std::vector<float> temperatures(const Temperature& temperature, int positions);

}  // namespace octavo
