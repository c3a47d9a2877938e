#include "fleet/flow/saturation.h"

#include <gtest/gtest.h>

#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

TEST(Saturation, ByWhatEndpointsTell) {
  TestFleet fleet(2);
  const UtilizationDetector detector;
  const auto tell = [&](EndpointId id, int waiting, double kv_usage, std::int64_t at) {
    fleet.fleet.update(id, [&](EndpointState& s) {
      s.waiting = waiting;
      s.kv_usage = kv_usage;
      s.observed_us = at;
    });
  };
  const auto saturation = [&](std::int64_t now) { return detector.saturation(*fleet.fleet.view(), now); };
  EXPECT_DOUBLE_EQ(saturation(0), 1) << "nothing is known";
  tell(0, 2, 0.2, 0);
  tell(1, 0, 0.4, 0);
  EXPECT_DOUBLE_EQ(saturation(100'000), (0.4 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(saturation(200'000), (0.4 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(saturation(200'001), 1) << "too old";
  tell(0, 10, 0, 200'001);
  EXPECT_DOUBLE_EQ(saturation(200'001), (2 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(detector.saturation(FleetView{}, 0), 1);
}

TEST(Saturation, ByWhatWasSent) {
  TestFleet fleet(2);
  const ConcurrencyDetector detector{.requests_max = 2};
  EXPECT_DOUBLE_EQ(detector.saturation(*fleet.fleet.view(), fleet.inflight), 0);
  for (int i = 0; i < 3; ++i) fleet.inflight.book(0, 1, 1);
  EXPECT_DOUBLE_EQ(detector.saturation(*fleet.fleet.view(), fleet.inflight), 0.75);
  EXPECT_DOUBLE_EQ(detector.saturation(FleetView{}, fleet.inflight), 1);
}

}  // namespace
}  // namespace octavo::fleet
