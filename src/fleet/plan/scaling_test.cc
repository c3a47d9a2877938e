#include "fleet/plan/scaling.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

const CapacityTable kTable({{1, 100}});  // one replica per 100 tokens/s

std::vector<int> decided(std::vector<double> predicted, const ScalingRules& rules, int first) {
  std::vector<int> replicas;
  for (const WindowPlan& window : plan_windows(predicted, predicted, kTable, rules, first))
    replicas.push_back(window.replicas);
  return replicas;
}

TEST(Scaling, FollowsThePredictionWithinTheLimits) {
  const ScalingRules rules{.replicas_min = 2, .replicas_max = 6, .scale_down_delay_us = 0};
  EXPECT_EQ(decided({0, 350, 900, 250, 50}, rules, 4), (std::vector<int>{4, 4, 6, 3, 2}));
  EXPECT_EQ(decided({0, 350}, rules, 9), (std::vector<int>{6, 4}));
}

TEST(Scaling, RemovesOnlyWhatWasNotNeededForAWhile) {
  const ScalingRules rules{.window_us = 60'000'000, .scale_down_delay_us = 120'000'000};
  EXPECT_EQ(decided({0, 500, 100, 300, 100, 100, 100}, rules, 1), (std::vector<int>{1, 5, 5, 5, 3, 3, 1}));
}

TEST(Scaling, AddsAfterTheStartAndRemovesAtOnce) {
  const ScalingRules rules{.window_us = 60'000'000, .scale_down_delay_us = 0, .startup_us = 60'000'000};
  const std::vector<double> predicted{0, 100, 300, 200, 200};
  const auto windows = plan_windows(predicted, predicted, kTable, rules, 1);
  const auto sizes = fleet_sizes(windows, rules, 5'000'000);
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].time_us, 5'000'000 + 3 * 60'000'000) << "decided in the second window";
  EXPECT_EQ(sizes[0].replicas, 3);
  EXPECT_EQ(sizes[1].time_us, 5'000'000 + 3 * 60'000'000);
  EXPECT_EQ(sizes[1].replicas, 2);
}

}  // namespace
}  // namespace octavo::fleet
