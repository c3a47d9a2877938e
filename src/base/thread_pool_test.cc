#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

TEST(ThreadPool, EveryRankRunsOncePerJob) {
  for (int threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    std::vector<int> calls(static_cast<std::size_t>(threads), 0);
    for (int round = 0; round < 1000; ++round)
      pool.run([&](int rank) { ++calls[static_cast<std::size_t>(rank)]; });
    for (int count : calls) EXPECT_EQ(count, 1000);
  }
}

TEST(ThreadPool, RangesCoverEachItemOnce) {
  ThreadPool pool(3);
  for (std::int64_t count : {0, 1, 5, 64, 1000}) {
    std::vector<int> touched(static_cast<std::size_t>(count), 0);
    pool.for_ranges(count, 7, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++touched[static_cast<std::size_t>(i)];
    });
    for (int times : touched) EXPECT_EQ(times, 1);
  }
}

TEST(ThreadPool, SleepingHelpersWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> ran{0};
    pool.run([&](int) { ++ran; });
    EXPECT_EQ(ran.load(), 2);
  }
}

TEST(UsableProcessors, AtLeastOne) { EXPECT_GE(usable_processors(), 1); }

}  // namespace
}  // namespace octavo
