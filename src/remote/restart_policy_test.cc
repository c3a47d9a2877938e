#include "remote/restart_policy.h"

#include <gtest/gtest.h>

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

TEST(RestartPolicy, WaitsLongerAfterEachDeathAndGivesUp) {
  RestartPolicy policy;
  EXPECT_EQ(policy.died(false), 0ms);
  for (int deaths = 2; deaths < RestartPolicy::kDeathsMax; ++deaths)
    EXPECT_EQ(policy.died(false), 300ms * (deaths - 1));
  EXPECT_EQ(policy.died(false), std::nullopt);
}

TEST(RestartPolicy, AnEngineThatWorkedBeginsTheCountAnew) {
  RestartPolicy policy;
  for (int deaths = 0; deaths < 20; ++deaths) {
    EXPECT_EQ(policy.died(true), 0ms);
    EXPECT_EQ(policy.died(false), 300ms);
  }
}

}  // namespace
}  // namespace octavo::remote
