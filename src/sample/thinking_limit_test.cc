#include "sample/thinking_limit.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr TokenId kBegin = 1, kEnd = 2;

TEST(ThinkingLimit, EndsThoughtsThatThePromptHasOpened) {
  ThinkingLimit limit(ThinkingBudget{kBegin, kEnd, 3, 1});
  EXPECT_TRUE(limit.counts());
  limit.append(7);
  EXPECT_EQ(limit.forced(), std::nullopt);
  limit.append(8);
  EXPECT_EQ(limit.forced(), kEnd);
  limit.append(kEnd);
  EXPECT_FALSE(limit.counts());
  for (int i = 0; i < 10; ++i) limit.append(9);
  EXPECT_EQ(limit.forced(), std::nullopt);
}

TEST(ThinkingLimit, CountsFromTheMarkOfTheModelsOwn) {
  ThinkingLimit limit(ThinkingBudget{kBegin, kEnd, 0, {}});
  limit.append(7);
  EXPECT_EQ(limit.forced(), std::nullopt);
  limit.append(kBegin);
  EXPECT_EQ(limit.forced(), kEnd);
}

TEST(ThinkingLimit, WithoutABudgetNothingIsForced) {
  ThinkingLimit limit(std::nullopt);
  for (const TokenId id : {kBegin, 7, 8, 9}) limit.append(id);
  EXPECT_FALSE(limit.counts());
  EXPECT_EQ(limit.forced(), std::nullopt);
}

}  // namespace
}  // namespace octavo
