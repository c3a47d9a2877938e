// Rotary embeddings (Su et al., "RoFormer", 2021), and methods to extend them to longer contexts.
// A head has rotary_dim / 2 pairs of elements. Pair i is rotated by position * frequency(i). Without scaling,
// frequency(i) is theta^(-2i / rotary_dim). The scaling methods:
// - linear: position interpolation (Chen et al., 2023; kaiokendev). All frequencies are divided by the
// factor.
// - dynamic: NTK-aware scaling (bloc97, emozilla, 2023). Theta grows with the length.
// - llama3: Llama 3.1. Low frequencies are divided by the factor, high ones do not change, and medium ones
// blend both.
// - yarn: Peng et al., 2023. A ramp over the pairs leads from unchanged to divided frequencies. cos and sin
// are scaled.
// - longrope: Ding et al., 2024. Each pair has a divisor for short and one for long contexts. cos and sin are
// scaled.
// - proportional: The frequencies of the first pairs (RopeScaling::share) are divided by the factor, and the
// other pairs are not rotated.
// - ntk: Theta is multiplied by the factor, and then all frequencies are divided by factor^(2 / rotary_dim).
// dynamic and longrope depend on the context length. transformers uses the current sequence's length. There,
// the same prompt gets other results in a longer conversation, and cached keys become wrong. Octavo uses
// max_model_len instead: dynamic scales for this length, and longrope uses the long divisors if this length
// exceeds the training length.
#pragma once

#include <vector>

#include "model/spec.h"

namespace octavo {

// Returns the angle per position for each pair, [rotary_dim / 2]. A step rotates its tokens by these angles;
// see AnglesArgs in kernels/ops.h.
std::vector<float> rope_frequencies(const RopeSpec& rope, int max_model_len);

// Returns the factor of queries at each position in [0, positions).
std::vector<float> temperatures(const Temperature& temperature, int positions);

}  // namespace octavo
