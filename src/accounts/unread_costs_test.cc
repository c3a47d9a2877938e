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

TEST(UnreadCostsTest, ACostIsReadWhenAllGenerationsHaveEnded) {
  UnreadCosts costs;
  UnreadCosts::Open request = costs.open("a"), generation = costs.open("a");
  costs.put("a", tokens(1));
  generation.reset();
  EXPECT_EQ(costs.take("a"), std::nullopt);
  generation = costs.open("a");
  costs.put("a", tokens(2));
  request.reset();
  EXPECT_EQ(costs.take("a"), std::nullopt);
  generation.reset();
  EXPECT_EQ(costs.take("a"), tokens(3));
}

TEST(UnreadCostsTest, SeveralCostsOfARequestCountOnce) {
  UnreadCosts costs;
  costs.put("a", tokens(1));
  for (std::size_t i = 0; i < UnreadCosts::kMost; ++i) costs.put("b", tokens(1));
  EXPECT_EQ(costs.take("a"), tokens(1));
  EXPECT_EQ(costs.take("b"), tokens(UnreadCosts::kMost));
}

TEST(UnreadCostsTest, AnOpenIdMayOutliveTheCosts) {
  UnreadCosts::Open open;
  {
    const UnreadCosts costs;
    open = costs.open("a");
  }
  EXPECT_NE(open, nullptr);
}

}  // namespace
}  // namespace octavo
