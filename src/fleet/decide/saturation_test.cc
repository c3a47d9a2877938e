#include "fleet/decide/saturation.h"

#include <gtest/gtest.h>

#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

TEST(Saturation, ByWhatEndpointsTell) {
  TestFleet fleet(2);
  const UtilizationDetector detector;
  const auto report = [&](EndpointId id, int waiting, double kv_usage, std::int64_t at) {
    fleet.fleet.update(id, [&](EndpointState& s) {
      s.waiting = waiting;
      s.kv_usage = kv_usage;
      s.observed_us = at;
    });
  };
  const auto saturation = [&](std::int64_t now) { return detector.saturation(*fleet.fleet.view(), now); };
  EXPECT_DOUBLE_EQ(saturation(0), 1) << "nothing is known";
  report(0, 2, 0.2, 0);
  report(1, 0, 0.4, 0);
  EXPECT_DOUBLE_EQ(saturation(100'000), (0.4 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(saturation(200'000), (0.4 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(saturation(200'001), 1) << "too old";
  report(0, 10, 0, 200'001);
  EXPECT_DOUBLE_EQ(saturation(200'001), (2 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(detector.saturation(FleetView{}, 0), 1);
  const UtilizationDetector ignoring{.ignores_stale = true};
  EXPECT_DOUBLE_EQ(ignoring.saturation(*fleet.fleet.view(), 200'001), 2);
  EXPECT_DOUBLE_EQ(ignoring.saturation(*fleet.fleet.view(), 1'000'000), 0) << "all are stale";
  EXPECT_DOUBLE_EQ(ignoring.saturation(FleetView{}, 0), 1);
}

TEST(Saturation, ByWhatWasSent) {
  TestFleet fleet(2);
  const ConcurrencyDetector detector{.requests_max = 2};
  EXPECT_DOUBLE_EQ(detector.saturation(*fleet.fleet.view(), fleet.inflight), 0);
  for (int i = 0; i < 3; ++i) fleet.inflight.book(0, 1, 1);
  EXPECT_DOUBLE_EQ(detector.saturation(*fleet.fleet.view(), fleet.inflight), 0.75);
  EXPECT_DOUBLE_EQ(detector.saturation(FleetView{}, fleet.inflight), 1);
  EXPECT_TRUE(detector.full(fleet.inflight.load(0)));
  EXPECT_FALSE(ConcurrencyDetector({.requests_max = 2, .headroom = 1}).full(fleet.inflight.load(0)));
  fleet.inflight.book(1, 50, 50);
  const ConcurrencyDetector tokens{.by_requests = false, .by_tokens = true, .tokens_max = 100};
  EXPECT_DOUBLE_EQ(tokens.saturation(*fleet.fleet.view(), fleet.inflight), (0.03 + 0.5) / 2);
  const ConcurrencyDetector both{.by_tokens = true, .requests_max = 30, .tokens_max = 100};
  EXPECT_DOUBLE_EQ(both.saturation(*fleet.fleet.view(), fleet.inflight), (0.1 + 0.5) / 2);
}

}  // namespace
}  // namespace octavo::fleet
