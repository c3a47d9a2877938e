#include "engine/cache/reuse_estimate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(ReuseEstimate, RegularPausesEndWhenTheyAreDue) {
  ReuseEstimate pauses;
  for (int i = 0; i < 500; ++i) pauses.observe(10 * kSecond);
  EXPECT_LT(pauses.chance(0), 0.6) << "the session has just paused";
  EXPECT_GT(pauses.chance(8 * kSecond), 0.8);
  EXPECT_LT(pauses.chance(100 * kSecond), 0.01) << "the session has probably ended";
  for (int idle = 1; idle < 8; ++idle)
    EXPECT_GE(pauses.chance(idle * kSecond), pauses.chance((idle - 1) * kSecond)) << idle;
}

TEST(ReuseEstimate, IrregularPausesMakeOldSessionsLessLikely) {
  ReuseEstimate pauses;
  for (int i = 0; i < 400; ++i)
    pauses.observe(static_cast<std::int64_t>(kSecond * std::exp(2.0 * std::sin(i * 2.4))));
  EXPECT_GT(pauses.chance(kSecond / 4), pauses.chance(20 * kSecond));
  EXPECT_GT(pauses.chance(kSecond), pauses.chance(60 * kSecond));
}

TEST(ReuseEstimate, IsAProbabilityForAllTimes) {
  ReuseEstimate pauses;
  for (const std::int64_t pause : {std::int64_t{0}, std::int64_t{-5}, kSecond, std::int64_t{1} << 50})
    pauses.observe(pause);
  for (std::int64_t idle = 1; idle < std::int64_t{1} << 60; idle *= 2) {
    EXPECT_GE(pauses.chance(idle), 0) << idle;
    EXPECT_LE(pauses.chance(idle), 1) << idle;
  }
}

}  // namespace
}  // namespace octavo
