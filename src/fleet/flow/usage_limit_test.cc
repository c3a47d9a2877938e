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
    policy->limit(saturation, out);
    return out;
  };
  EXPECT_THAT(ceilings(0.4), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(0.9, 1), ElementsAre(1));
  // 0.65: of the ceilings 1, 0.675 and 0.35 the last is reached; round(0.65 / 0.35) = 2, every other turn.
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 0));
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(0.65), ElementsAre(1, 1, 0));
  // 0.8: round(0.8 / 0.2) = 4, for both lower bands alike; this is the fourth turn.
  EXPECT_THAT(ceilings(0.8), ElementsAre(1, 1, 1));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(ceilings(0.8), ElementsAre(1, 0, 0));
  EXPECT_THAT(ceilings(0.8), ElementsAre(1, 1, 1));
  EXPECT_THAT(ceilings(1), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace octavo::fleet
