#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

TEST(ThreadPool, EveryUnitRunsOnceOnAThreadOfThePool) {
  for (int threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    for (std::int64_t count : {0, 1, 2, 9, 100}) {
      for (int round = 0; round < 300; ++round) {
        std::vector<int> calls(static_cast<std::size_t>(count), 0);
        std::atomic<bool> strange{false};
        pool.for_units(count, [&](int rank, std::int64_t unit) {
          ++calls[static_cast<std::size_t>(unit)];
          if (rank < 0 || rank >= threads) strange = true;
        });
        EXPECT_FALSE(strange.load());
        for (int times : calls) ASSERT_EQ(times, 1);
      }
    }
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

// Each unit waits for the other, so two threads are needed.
TEST(ThreadPool, SleepingHelpersWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> arrived{0};
    pool.for_units(2, [&](int, std::int64_t) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived.load(), 2);
  }
}

// A helper that wakes up late joins the job that runs then.
TEST(ThreadPool, JobsThatFollowAtOnceLoseNoUnit) {
  ThreadPool pool(4);
  for (std::int64_t round = 0; round < 200000; ++round) {
    std::atomic<std::int64_t> total{0};
    const std::int64_t count = 2 + round % 5;
    pool.for_units(count, [&](int, std::int64_t unit) { total += round + unit; });
    ASSERT_EQ(total.load(), count * round + count * (count - 1) / 2);
  }
}

TEST(UsableProcessors, AtLeastOne) { EXPECT_GE(usable_processors(), 1); }

}  // namespace
}  // namespace octavo
