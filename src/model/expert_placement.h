// Which experts of a layer the ranks hold, where each rank has some of them whole: so many places, rank by
// rank, each of which holds one expert. Heavy experts may have several places, and share their tokens out
// among them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

using ExpertPlacement = std::vector<std::int32_t>;  // the expert of each place

// Where a rank's places begin; of rank `ranks`: how many there are.
constexpr std::int64_t first_place(std::int64_t places, int ranks, int rank) { return places * rank / ranks; }

// Each expert in its turn, then the first `redundant` ones again; redundant <= experts * (ranks - 1).
ExpertPlacement first_placement(int experts, int redundant);

// A placement that spreads the loads, one of each expert, evenly over ranks, after DeepSeek's EPLB (2025):
// one place after the other goes to the expert with the greatest load a place; then the places, the heaviest
// first, go to the rank with the least load so far that has room and, if there is one, has not got this
// expert. No expert has more places than there are ranks. On each rank what stays keeps its place of `now`,
// whose size and experts the new one has.
ExpertPlacement balanced_placement(std::span<const double> loads, const ExpertPlacement& now, int ranks);

// The load of each rank: an expert's is shared evenly by its places.
std::vector<double> rank_loads(std::span<const double> loads, const ExpertPlacement& placement, int ranks);

// The mean of the ranks' loads by the greatest: 1 where all have as much to do, or nothing.
double balancedness(std::span<const double> rank_loads);

}  // namespace octavo
