#include "engine/draft/step_times.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(StepTimes, AreInProportionBetweenWhatIsKnown) {
  StepTimes times;
  EXPECT_EQ(times.of(1), 0);
  times.note(4, 1000);
  EXPECT_EQ(times.of(1), 1000);
  EXPECT_EQ(times.of(4), 1000);
  EXPECT_EQ(times.of(500), 1000);
  times.note(8, 2000);
  EXPECT_EQ(times.of(5), 1250);
  EXPECT_EQ(times.of(8), 2000);
  EXPECT_EQ(times.of(9), 2000);
}

TEST(StepTimes, FollowWhatIsNotedAndNotASingleStep) {
  StepTimes times;
  times.note(1, 1000);
  times.note(1, 1'000'000);
  EXPECT_EQ(times.of(1), 1375);
  for (int i = 0; i < 100; ++i) times.note(1, 3000);
  EXPECT_NEAR(static_cast<double>(times.of(1)), 3000, 10);
}

TEST(StepTimes, KeepNothingOfLargeSteps) {
  StepTimes times;
  times.note(0, 1000);
  times.note(StepTimes::kTokensMost + 1, 1000);
  EXPECT_EQ(times.of(1), 0);
}

}  // namespace
}  // namespace octavo
