#include "fleet/plan/queue_scaler.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// A fleet that changes its size at once and is read every 15 seconds. The target is 10 requests per
// replica.
struct Watched {
  QueueScaler scaler{{.replicas_min = 1, .replicas_max = 20, .scale_down_delay_us = 60 * kSecond}, 10};
  std::int64_t now_us = 0;
  int existing = 4;

  int after(double requests) {
    const ReplicaReading each{.running = 0.75 * requests / existing, .waiting = 0.25 * requests / existing};
    now_us += QueueScaler::kIntervalUs;
    return existing = scaler.read(now_us, std::vector(static_cast<std::size_t>(existing), each));
  }
};

TEST(QueueScaler, GoesUpInProportion) {
  Watched fleet;
  EXPECT_EQ(fleet.after(40), 4);
  EXPECT_EQ(fleet.after(61), 7);
}

TEST(QueueScaler, StaysWithinTheTolerance) {
  Watched fleet;
  EXPECT_EQ(fleet.after(43.9), 4);
  EXPECT_EQ(fleet.after(44.1), 5);
}

TEST(QueueScaler, AtMostDoublesOrAddsFourAndNeverPassesTheBounds) {
  Watched fleet;
  EXPECT_EQ(fleet.after(1000), 8);
  EXPECT_EQ(fleet.after(1000), 16);
  EXPECT_EQ(fleet.after(1000), 20);
  Watched small{.existing = 1};
  EXPECT_EQ(small.after(1000), 5);
}

TEST(QueueScaler, GoesDownToTheHighestWishOfTheDelay) {
  Watched fleet;
  EXPECT_EQ(fleet.after(80), 8);
  EXPECT_EQ(fleet.after(30), 8);
  EXPECT_EQ(fleet.after(50), 8);
  EXPECT_EQ(fleet.after(20), 8);
  EXPECT_EQ(fleet.after(20), 8);
  EXPECT_EQ(fleet.after(20), 5) << "the wish for eight is over";
  EXPECT_EQ(fleet.after(0), 5);
  EXPECT_EQ(fleet.after(0), 2);
}

}  // namespace
}  // namespace octavo::fleet
