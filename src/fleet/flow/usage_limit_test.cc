#include "fleet/flow/usage_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <vector>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

TEST(UsageLimit, TheSoftCeilingClosesLowerBandsInMostTurns) {
  const boost::json::object none;
  Parameters parameters(none, "");
  const auto policy = find_usage_limit("soft-reflective-ceiling-policy")->make(parameters);
  const auto ceilings = [&](double saturation, std::size_t bands = 3) {
    std::vector<double> out(bands, 1);
    policy->limit(saturation, std::vector<int>(bands, 0), out);
    return out;
  };
  EXPECT_THAT(ceilings(0.4), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(0.9, 1), ElementsAre(1));
  // At 0.65, the policy's ceilings are 1, 0.675 and 0.35. Only the third band is blocked: 0.65 is above 0.35.
  // round(0.65 / 0.35) = 2, so the band is dispatched at every second call.
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 0));
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 0));
  // At 0.8, the second and third band are blocked. round(0.8 / 0.2) = 4, and this is the fourth call.
  EXPECT_THAT(ceilings(0.8), ElementsAre(1, 1, 1));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(ceilings(0.8), ElementsAre(1, 0, 0));
  EXPECT_THAT(ceilings(0.8), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(1), ElementsAre(1, 0, 0));
}

TEST(UsageLimit, LowerBandsAreHeldBackSooner) {
  using testing::DoubleEq;
  const auto ceilings = [](const std::string& domain, const std::vector<int>& priorities) {
    const boost::json::object config{{"domain", domain}, {"minCeiling", 0.5}};
    Parameters parameters(config, "");
    std::vector<double> out(priorities.size(), 1);
    find_usage_limit("priority-holdback-policy")->make(parameters)->limit(0, priorities, out);
    return out;
  };
  EXPECT_THAT(ceilings("rank", {10, 9, 0}), ElementsAre(1, 0.75, 0.5));
  EXPECT_THAT(ceilings("value", {10, 9, 0}), ElementsAre(1, DoubleEq(0.95), 0.5));
  EXPECT_THAT(ceilings("value", {3}), ElementsAre(1));
  const boost::json::object none;
  Parameters parameters(none, "p");
  find_usage_limit("priority-holdback-policy")->make(parameters);
  EXPECT_EQ(parameters.done().error().field, "p.minCeiling");
}

}  // namespace
}  // namespace octavo::fleet
