#include "accounts/unread_costs.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

AnswerCost tokens(std::int64_t count) {
  AnswerCost cost;
  cost[CostUnit::output_tokens] = count;
  return cost;
}

TEST(UnreadCostsTest, EachCostIsReadOnce) {
  UnreadCosts costs;
  costs.put("a", tokens(1));
  costs.put("b", tokens(2));
  EXPECT_EQ(costs.take("b"), tokens(2));
  EXPECT_EQ(costs.take("b"), std::nullopt);
  EXPECT_EQ(costs.take("a"), tokens(1));
  EXPECT_EQ(costs.take("c"), std::nullopt);
}

TEST(UnreadCostsTest, TheOldestIsForgotten) {
  UnreadCosts costs;
  for (std::size_t i = 0; i <= UnreadCosts::kMost; ++i) costs.put(std::to_string(i), tokens(1));
  EXPECT_EQ(costs.take("0"), std::nullopt);
  EXPECT_EQ(costs.take("1"), tokens(1));
  EXPECT_EQ(costs.take(std::to_string(UnreadCosts::kMost)), tokens(1));
}

}  // namespace
}  // namespace octavo
