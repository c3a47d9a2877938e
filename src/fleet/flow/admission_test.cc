#include "fleet/flow/admission.h"

#include <gtest/gtest.h>

#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

TEST(ProbabilisticAdmitter, RefusesTheLikelierTheMoreIsTaken) {
  TestFleet fleet(2);
  fleet.fleet.update(
      0, [](EndpointState& s) { s = {.availability = s.availability, .observed_us = 0, .waiting = 1}; });
  fleet.fleet.update(
      1, [](EndpointState& s) { s = {.availability = s.availability, .observed_us = 0, .kv_usage = 0.16}; });
  const auto view = fleet.fleet.view();
  const Candidates all{&view->members[0], &view->members[1]};
  const ProbabilisticAdmitter admitter;  // saturation 0.2: 300 x 0.2^5 = 0.096
  EXPECT_FALSE(admitter.refusal(0, all, 0)) << "only priorities below 0 are refused";
  EXPECT_EQ(admitter.refusal(-1, all, 0.095), "probabilistic-admitter: rejected, saturation=0.200 prob=0.10");
  EXPECT_FALSE(admitter.refusal(-1, all, 0.097));
  fleet.fleet.update(1, [](EndpointState& s) { s.observed_us = kNeverObserved; });
  const auto stale = fleet.fleet.view();
  EXPECT_TRUE(admitter.refusal(-1, Candidates{&stale->members[1]}, 0.999)) << "who tells nothing is full";
}

}  // namespace
}  // namespace octavo::fleet
