#include "engine/loop/step_watch.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr StepWatchRule kRule{.quiet_us = 1000, .device_step_us = 10'000};

TEST(StepProgress, AThreadThatComputesIsBusyHoweverLongItTakes) {
  StepProgress progress(kRule, false);
  for (std::int64_t t = 0; t < 1'000'000; t += 500) EXPECT_FALSE(progress.hangs(7, t, t / 2)) << t;
}

TEST(StepProgress, AThreadThatWaitsInItsStepHangs) {
  StepProgress progress(kRule, false);
  EXPECT_FALSE(progress.hangs(7, 0, 5000));
  EXPECT_FALSE(progress.hangs(7, 500, 5001));
  EXPECT_FALSE(progress.hangs(7, 999, 5001));
  EXPECT_TRUE(progress.hangs(7, 1000, 5002));
  EXPECT_TRUE(progress.hangs(7, 5000, 5003));
  EXPECT_FALSE(progress.hangs(7, 6000, 6000));  // the thread makes progress
}

TEST(StepProgress, AStepWhoseThreadsGetNoProcessorIsSlow) {
  StepProgress progress(kRule, false);
  for (std::int64_t t = 0; t < 100'000; t += 250) EXPECT_FALSE(progress.hangs(7, t, 0, t * 3 / 4)) << t;
  EXPECT_FALSE(progress.hangs(7, 100'500, 0, 74'820)) << "750 us since it waited";
  EXPECT_TRUE(progress.hangs(7, 101'000, 0, 74'830));
}

TEST(StepProgress, AnIdleEngineAndOneStepAfterTheOtherAreHealthy) {
  StepProgress progress(kRule, false);
  for (std::int64_t t = 0; t < 100'000; t += 900) EXPECT_FALSE(progress.hangs(0, t, 0));
  for (std::uint64_t step = 1; step < 100; ++step)
    EXPECT_FALSE(progress.hangs(step, 100'000 + static_cast<std::int64_t>(step) * 900, 0));
}

TEST(StepProgress, ADevicesStepHasALimit) {
  StepProgress progress(kRule, true);
  EXPECT_FALSE(progress.hangs(1, 0, 0));
  EXPECT_FALSE(progress.hangs(1, 9999, 0));
  EXPECT_TRUE(progress.hangs(1, 10'000, 1'000'000));  // a spinning thread makes no progress
  EXPECT_FALSE(progress.hangs(2, 10'001, 1'000'000));
}

}  // namespace
}  // namespace octavo
