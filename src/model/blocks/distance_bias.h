// Tables of biases that depend on the distance between query and key (AttentionArgs::distance_bias).
#pragma once

#include <cstdint>
#include <vector>

#include "model/parameters.h"

namespace octavo {

// The table [q_heads, 2 * furthest + 1] of T5, from one learned number per bucket and head.
VectorParameter distance_bias(const Attention& a, const Namer& name);

// Returns -slope * sqrt(distance) for each slope and the distances of a causal query, up to `most`. The half
// for later tokens is 0.
VectorParameter root_biases(const std::vector<float>& slopes, std::int64_t most);

}  // namespace octavo
