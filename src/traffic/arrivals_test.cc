#include "traffic/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo::traffic {
namespace {

TEST(Arrivals, WithoutARateAllComeAtOnce) {
  EXPECT_EQ(arrival_times(3, {}), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(Arrivals, TheLastOneLiesWhereTheRateSaysAndTheSeedDecidesTheRest) {
  for (const double burstiness : {0.2, 1.0, 20.0}) {
    const ArrivalOptions options{.request_rate = 50, .burstiness = burstiness, .seed = 3};
    const auto times = arrival_times(200, options);
    EXPECT_TRUE(std::ranges::is_sorted(times));
    EXPECT_EQ(times.back(), 4'000'000);
    EXPECT_EQ(times, arrival_times(200, options));
    EXPECT_NE(times, arrival_times(200, {.request_rate = 50, .burstiness = burstiness, .seed = 4}));
  }
}

TEST(Arrivals, ARampBeginsSlowAndEndsFast) {
  for (const RampUp ramp : {RampUp::linear, RampUp::exponential}) {
    const auto times =
        arrival_times(400, {.burstiness = 100, .ramp_up = ramp, .ramp_up_start = 1, .ramp_up_end = 100});
    EXPECT_GT(times[10] - times[0], 3 * (times[399] - times[389]));
  }
}

}  // namespace
}  // namespace octavo::traffic
