#include "engine/load/memory_plan.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(MemoryPlan, TakesWhatIsAskedFor) {
  EXPECT_EQ(cache_bytes({.requested = 5 * kGiB, .useful = kGiB, .available = kGiB}), 5 * kGiB);
}

TEST(MemoryPlan, LeavesTheHostItsMemory) {
  EXPECT_EQ(cache_bytes({.useful = 100 * kGiB, .available = 6 * kGiB}), 3 * kGiB);
  EXPECT_EQ(cache_bytes({.useful = 100 * kGiB, .available = 64 * kGiB}), 4 * kGiB);
  EXPECT_EQ(cache_bytes({.useful = 100 * kGiB, .available = 0}), 4 * kGiB);
  EXPECT_EQ(cache_bytes({.useful = kGiB, .available = 64 * kGiB}), kGiB);
}

TEST(MemoryPlan, FillsADeviceUpToItsUtilisation) {
  const MemoryPlan plan{.useful = 1000 * kGiB,
                        .all = 80 * kGiB,
                        .available = 60 * kGiB,
                        .reserved = 2 * kGiB,
                        .shared_with_host = false,
                        .utilization = 0.75};
  EXPECT_EQ(cache_bytes(plan), (60 - 20 - 2) * kGiB);
  MemoryPlan full = plan;
  full.available = 10 * kGiB;  // other programs use the device
  EXPECT_EQ(cache_bytes(full), 0);
  MemoryPlan small = plan;
  small.useful = 3 * kGiB;
  EXPECT_EQ(cache_bytes(small), 3 * kGiB);
}

}  // namespace
}  // namespace octavo
