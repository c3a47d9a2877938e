#include "base/error.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace octavo {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return invalid("x", "must be even, got {}", x);
  return x / 2;
}
Result<int> quarter(int x) {
  TRY(const int h, half(x));
  return half(h);
}
Result<> both(int a, int b) {
  TRY_VOID(half(a));
  TRY_VOID(half(b));
  return {};
}

TEST(Error, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error().field, "x");
  EXPECT_EQ(quarter(6).error().message, "must be even, got 3");
  EXPECT_TRUE(both(2, 4).has_value());
  EXPECT_FALSE(both(2, 3).has_value());
}

TEST(CheckDeathTest, PrintsConditionAndValues) {
  EXPECT_DEATH(CHECK(1 == 2, "blocks = {}", 7), "CHECK\\(1 == 2\\) failed: blocks = 7");
}

}  // namespace
}  // namespace octavo
