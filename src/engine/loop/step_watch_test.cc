#include "engine/loop/step_watch.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::int64_t waited_us = 0;
std::int64_t waited() { return waited_us; }

constexpr StepWatchRule kRule{.quiet_us = 1000, .device_step_us = 10'000};

TEST(StepProgress, AThreadThatComputesIsBusyHoweverLongItTakes) {
  StepProgress progress(kRule, false);
  for (std::int64_t t = 0; t < 1'000'000; t += 500) EXPECT_FALSE(progress.hangs(7, t, t / 2, waited)) << t;
}

TEST(StepProgress, AThreadThatWaitsInItsStepHangs) {
  StepProgress progress(kRule, false);
  EXPECT_FALSE(progress.hangs(7, 0, 5000, waited));
  EXPECT_FALSE(progress.hangs(7, 500, 5001, waited));
  EXPECT_FALSE(progress.hangs(7, 999, 5001, waited));
  EXPECT_TRUE(progress.hangs(7, 1000, 5002, waited));
  EXPECT_TRUE(progress.hangs(7, 5000, 5003, waited));
  EXPECT_FALSE(progress.hangs(7, 6000, 6000, waited));
}

TEST(StepProgress, AStepWhoseThreadsGetNoProcessorIsSlow) {
  StepProgress progress(kRule, false);
  waited_us = 0;
  for (std::int64_t t = 0; t < 100'000; t += 250, waited_us += 200)
    EXPECT_FALSE(progress.hangs(7, t, 0, waited)) << t;
  EXPECT_FALSE(progress.hangs(7, 100'500, 0, waited)) << "750 us since it waited";
  EXPECT_TRUE(progress.hangs(7, 101'000, 0, waited));
}

TEST(StepProgress, AnIdleEngineAndOneStepAfterTheOtherAreHealthy) {
  StepProgress progress(kRule, false);
  for (std::int64_t t = 0; t < 100'000; t += 900) EXPECT_FALSE(progress.hangs(0, t, 0, waited));
  for (std::uint64_t step = 1; step < 100; ++step)
    EXPECT_FALSE(progress.hangs(step, 100'000 + static_cast<std::int64_t>(step) * 900, 0, waited));
}

TEST(StepProgress, ADevicesStepHasALimit) {
  StepProgress progress(kRule, true);
  EXPECT_FALSE(progress.hangs(1, 0, 0, waited));
  EXPECT_FALSE(progress.hangs(1, 9999, 0, waited));
  EXPECT_TRUE(progress.hangs(1, 10'000, 1'000'000, waited));  // a spinning thread makes no progress
  EXPECT_FALSE(progress.hangs(2, 10'001, 1'000'000, waited));
}

}  // namespace
}  // namespace octavo
