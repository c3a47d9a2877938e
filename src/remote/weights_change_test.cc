#include "remote/weights_change.h"

#include <gtest/gtest.h>

namespace octavo::remote {
namespace {

const Error kDeath{ErrorCode::internal, "the model is broken", {}};

TEST(WeightsChange, ANewProcessHasTheChosenWeights) {
  WeightsChange weights;
  EXPECT_FALSE(weights.begin()) << "no choice";
  ASSERT_TRUE(weights.choose("a", [](const Result<>&) {}));
  EXPECT_EQ(weights.path(), "") << "until the process is replaced";
  EXPECT_FALSE(weights.choose("b", [](const Result<>&) {}));
  EXPECT_FALSE(weights.ready().done) << "a process with the weights before";
  ASSERT_TRUE(weights.begin());
  EXPECT_EQ(weights.path(), "a");
  const auto ended = weights.ready();
  EXPECT_TRUE(ended.done);
  EXPECT_TRUE(ended.result);
  EXPECT_FALSE(weights.revert(kDeath)) << "a later death keeps them";
  EXPECT_EQ(weights.path(), "a");
}

TEST(WeightsChange, WeightsThatCannotBeReadAreLeft) {
  WeightsChange weights;
  ASSERT_TRUE(weights.choose("a", [](const Result<>&) {}));
  ASSERT_TRUE(weights.begin());
  ASSERT_TRUE(weights.revert(kDeath));
  EXPECT_EQ(weights.path(), "");
  EXPECT_FALSE(weights.revert(kDeath)) << "the previous weights can fail, too: an ordinary death";
  const auto ended = weights.ready();
  ASSERT_TRUE(ended.done);
  EXPECT_EQ(ended.result.error().message, "the model is broken");
  EXPECT_FALSE(weights.ready().done);
}

TEST(WeightsChange, TheSameWeightsAreReadAgain) {
  WeightsChange weights;
  ASSERT_TRUE(weights.choose("a", [](const Result<>&) {}) && weights.begin());
  (void)weights.ready();
  ASSERT_TRUE(weights.choose("", [](const Result<>&) {}) && weights.begin());
  EXPECT_EQ(weights.path(), "a");
  EXPECT_TRUE(weights.give_up());
  EXPECT_FALSE(weights.give_up());
}

}  // namespace
}  // namespace octavo::remote
