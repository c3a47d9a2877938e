// Placement of experts on the ranks of expert parallelism. Every rank has a number of slots, and a slot
// contains one complete expert. A busy expert may have several slots, which share its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

using ExpertPlacement = std::vector<std::int32_t>;  // expert of each slot, in the order of ranks

// Index of the first slot of a rank. For rank == ranks, the result is the number of slots.
constexpr std::int64_t first_slot(std::int64_t slots, int ranks, int rank) { return slots * rank / ranks; }

// Returns a placement with experts + redundant slots: the experts 0, 1 .. in order, and again from 0 after
// the last expert. `redundant` is at most experts * (ranks - 1).
ExpertPlacement first_placement(int experts, int redundant);

// Balances `loads` over ranks, as DeepSeek's EPLB (2025) does. First, each extra slot is given to the expert
// with the highest load per slot. Then the slots, heaviest first, are given to the least loaded rank that has
// a free slot, if possible to a rank without this expert. An expert has at most one slot per rank. An expert
// that stays on a rank keeps its slot in `now`. The result has the same number of slots as `now`.
ExpertPlacement balanced_placement(std::span<const double> loads, const ExpertPlacement& now, int ranks);

// Load of each rank, if the slots of an expert share its load evenly.
std::vector<double> rank_loads(std::span<const double> loads, const ExpertPlacement& placement, int ranks);

// Mean of the ranks' loads divided by their maximum. The result is 1 if all loads are equal or 0.
double balancedness(std::span<const double> rank_loads);

}  // namespace octavo
