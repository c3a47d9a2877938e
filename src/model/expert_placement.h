// Placement of whole experts on ranks: a list of slots, rank by rank, each of which holds one expert. A
// heavy expert may have several slots, which share its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

using ExpertPlacement = std::vector<std::int32_t>;  // the expert of each slot

// The first slot of a rank; for rank `ranks`: the number of slots.
constexpr std::int64_t first_place(std::int64_t places, int ranks, int rank) { return places * rank / ranks; }

// Each expert once in order, then the first `redundant` ones again; redundant <= experts * (ranks - 1).
ExpertPlacement first_placement(int experts, int redundant);

// Returns a placement that spreads the experts' `loads` evenly over ranks, after DeepSeek's EPLB (2025).
// First, each further slot goes to the expert with the greatest load per slot. Then the slots, heaviest
// first, go to the rank with the least load so far that has room. Ranks without this expert are preferred.
// No expert has more slots than there are ranks. An expert that stays on a rank keeps its slot in `now`.
// The new placement has the size and the experts of `now`.
ExpertPlacement balanced_placement(std::span<const double> loads, const ExpertPlacement& now, int ranks);

// The load of each rank: an expert's load is divided evenly among its slots.
std::vector<double> rank_loads(std::span<const double> loads, const ExpertPlacement& placement, int ranks);

// The mean of the ranks' loads by the greatest: 1 where all have as much to do, or nothing.
double balancedness(std::span<const double> rank_loads);

}  // namespace octavo
