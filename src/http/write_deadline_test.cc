#include "http/write_deadline.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

TEST(WriteDeadline, IsExtendedWhileTheClientReads) {
  WriteDeadline deadline;
  EXPECT_FALSE(deadline.is_reached(1'000'000));
  deadline.start(0, 60);
  EXPECT_FALSE(deadline.is_reached(60));
  for (int minute = 1; minute < 100; ++minute) {
    const std::int64_t now = minute * 61;
    ASSERT_TRUE(deadline.is_reached(now));
    ASSERT_TRUE(deadline.extend(now, 1000 - minute));
    ASSERT_FALSE(deadline.is_reached(now + 60));
  }
  deadline.stop();
  EXPECT_FALSE(deadline.is_reached(1'000'000));
}

TEST(WriteDeadline, EndsForAClientThatReadsNothing) {
  WriteDeadline deadline;
  deadline.start(0, 60);
  EXPECT_TRUE(deadline.extend(61, 1000));
  EXPECT_FALSE(deadline.extend(122, 1000));
  deadline.start(200, 60);
  EXPECT_FALSE(deadline.extend(261, -1));
}

}  // namespace
}  // namespace octavo::http
