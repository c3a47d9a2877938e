#include "fleet/route/retry_budget.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

int taken(RetryBudget& budget, int tries, std::int64_t now_us) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += budget.take(now_us) ? 1 : 0;
  return count;
}

TEST(RetryBudget, AFewAreFreeEachSecond) {
  RetryBudget budget(0.2);
  EXPECT_EQ(taken(budget, 100, 1'000'000'000), 10);
  EXPECT_EQ(taken(budget, 100, 1'000'000'000), 0);
  EXPECT_EQ(taken(budget, 100, 1'000'500'000), 5);
  EXPECT_EQ(taken(budget, 100, 2'000'000'000), 10) << "they are not saved";
}

TEST(RetryBudget, ShareOfTheRequestsComesOnTop) {
  RetryBudget budget(0.2);
  for (int i = 0; i < 100; ++i) budget.earn();
  const int earned = taken(budget, 1000, 0);
  EXPECT_GE(earned, 19);
  EXPECT_LE(earned, 20 + 10);
  for (int i = 0; i < 1'000'000; ++i) budget.earn();
  EXPECT_LE(taken(budget, 1000, 0), 110) << "a quiet hour does not pay for a storm";
}

}  // namespace
}  // namespace octavo::fleet
