#include "model/expert_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace octavo {
namespace {

double greatest(const std::vector<double>& loads) { return *std::ranges::max_element(loads); }

// Returns loads in which a fifth of the experts have most tokens, and some experts have none.
std::vector<double> some_loads(std::uint64_t seed, int experts) {
  std::vector<double> loads;
  for (int e = 0; e < experts; ++e) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(e));
    loads.push_back(static_cast<double>(bits % 5 == 0 ? bits % 9973 : bits % 101));
  }
  return loads;
}

TEST(ExpertPlacement, SlotsBeginAlike) {
  EXPECT_EQ(first_placement(3, 2), (ExpertPlacement{0, 1, 2, 0, 1}));
  EXPECT_EQ(first_slot(5, 2, 1), 2);
  EXPECT_EQ(first_slot(5, 2, 2), 5);
}

// DeepSeek's example for one node (12 experts, 16 slots), on 4 ranks.
TEST(ExpertPlacement, AKnownLoadIsSpread) {
  const std::vector<double> loads{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
  const ExpertPlacement placement = balanced_placement(loads, first_placement(12, 4), 4);
  for (const int heavy : {1, 4, 5, 10}) EXPECT_EQ(std::ranges::count(placement, heavy), 2) << heavy;
  EXPECT_GT(balancedness(rank_loads(loads, placement, 4)), 0.95);
  EXPECT_LT(balancedness(rank_loads(loads, first_placement(12, 4), 4)), 0.8);
}

TEST(ExpertPlacement, WhateverTheLoadsAre) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const int ranks = 2 + static_cast<int>(random_bits(seed, 1) % 7);
    const int experts = ranks + static_cast<int>(random_bits(seed, 2) % 60);
    const int redundant =
        static_cast<int>(random_bits(seed, 3) % static_cast<std::uint64_t>(experts * (ranks - 1) + 1));
    const std::vector<double> loads = some_loads(seed, experts);
    const ExpertPlacement now =
        seed % 2 == 0
            ? first_placement(experts, redundant)
            : balanced_placement(some_loads(seed + 1, experts), first_placement(experts, redundant), ranks);
    const ExpertPlacement next = balanced_placement(loads, now, ranks);
    ASSERT_EQ(next.size(), now.size());
    double most_by_slot = 0;
    for (int e = 0; e < experts; ++e) {
      const auto slots = std::ranges::count(next, e);
      ASSERT_GE(slots, 1) << "expert " << e << " of seed " << seed;
      ASSERT_LE(slots, ranks);
      most_by_slot = std::max(most_by_slot, loads[static_cast<std::size_t>(e)] / static_cast<double>(slots));
    }
    const std::vector<double> sums = rank_loads(loads, next, ranks);
    EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0),
                std::accumulate(loads.begin(), loads.end(), 0.0), 1e-6);
    // Giving one expert's slot to another expert must not reduce the largest load per slot.
    for (int e = 0; e < experts; ++e)
      for (int other = 0; other < experts; ++other) {
        const auto mine = static_cast<double>(std::ranges::count(next, e)),
                   theirs = static_cast<double>(std::ranges::count(next, other));
        if (mine < 2 || theirs >= ranks) continue;
        EXPECT_LE(loads[static_cast<std::size_t>(other)] / theirs,
                  loads[static_cast<std::size_t>(e)] / (mine - 1) + 1e-9);
      }
    // If all ranks have free slots, the load of a rank exceeds the mean by at most the load of the last slot
    // that it received.
    if (static_cast<int>(now.size()) % ranks == 0) {
      const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / ranks;
      EXPECT_LE(greatest(sums), std::max(greatest(rank_loads(loads, now, ranks)), mean + most_by_slot) + 1e-9)
          << seed;
    }
    EXPECT_EQ(balanced_placement(loads, now, ranks), next) << "the same of the same";
    EXPECT_EQ(balanced_placement(loads, next, ranks), next) << "what is balanced stays where it is";
  }
}

TEST(ExpertPlacement, Balancedness) {
  EXPECT_EQ(balancedness(std::vector<double>{0, 0}), 1);
  EXPECT_EQ(balancedness(std::vector<double>{3, 1}), 2.0 / 3);
}

}  // namespace
}  // namespace octavo
