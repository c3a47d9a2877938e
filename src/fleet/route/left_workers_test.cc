#include "fleet/route/left_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LeftWorkers, AreForgottenAMinuteAfterTheyLeft) {
  LeftWorkers workers;
  workers.left("a", 100);
  workers.left("b", 200);
  workers.left("a", 150);
  EXPECT_THAT(workers.take_forgotten(99 + LeftWorkers::kKeptUs), IsEmpty());
  EXPECT_THAT(workers.take_forgotten(100 + LeftWorkers::kKeptUs), ElementsAre("a"));
  EXPECT_THAT(workers.take_forgotten(100 + LeftWorkers::kKeptUs), IsEmpty());
  workers.returned("b");
  EXPECT_THAT(workers.take_forgotten(200 + LeftWorkers::kKeptUs), IsEmpty());
}

}  // namespace
}  // namespace octavo::fleet
