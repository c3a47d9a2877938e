// Placement of complete experts on ranks: a list of slots in rank order, each of which contains one expert. A
// busy expert may have several slots, which share its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

using ExpertPlacement = std::vector<std::int32_t>;  // expert of each slot

// Returns the first slot of a rank; for rank == ranks, the number of slots.
constexpr std::int64_t first_place(std::int64_t places, int ranks, int rank) { return places * rank / ranks; }

// Returns each expert once in order, then the first `redundant` experts again; redundant <= experts * (ranks
// - 1).
ExpertPlacement first_placement(int experts, int redundant);

// Returns a placement that spreads the experts' `loads` evenly over ranks, as DeepSeek's EPLB (2025) does.
// First, each extra slot is given to the expert with the highest load per slot. Then the slots, heaviest
// first, are given to the least loaded rank with free slots, if possible to one without this expert. An
// expert has at most one slot per rank. An expert that stays on a rank keeps its slot in `now`. The result
// has the same size and the same experts as `now`.
ExpertPlacement balanced_placement(std::span<const double> loads, const ExpertPlacement& now, int ranks);

// Returns the load of each rank, if the load of an expert is divided evenly among its slots.
std::vector<double> rank_loads(std::span<const double> loads, const ExpertPlacement& placement, int ranks);

// Returns the mean of the ranks' loads divided by the maximum; 1 if all loads are equal or 0.
double balancedness(std::span<const double> rank_loads);

}  // namespace octavo
