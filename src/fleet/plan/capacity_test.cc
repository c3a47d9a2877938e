#include "fleet/plan/capacity.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kWindow = 10'000'000;

// Requests with 1,000 prompt tokens and 10 output tokens. `counts` has the number of requests in each
// window of 10 s.
Trace windows_of(std::initializer_list<int> counts) {
  Trace trace;
  std::int64_t begin_us = 7'000'000;
  for (const int count : counts) {
    for (int i = 0; i < count; ++i) {
      trace.requests.push_back({.arrival_us = begin_us + i * kWindow / count,
                                .input_tokens = 1000,
                                .output_tokens = 10,
                                .first_block = static_cast<std::uint32_t>(trace.blocks.size())});
      for (int block = 0; block < 2; ++block)
        trace.blocks.push_back(static_cast<std::uint32_t>(trace.blocks.size()));
    }
    begin_us += kWindow;
  }
  trace.block_limit = static_cast<std::uint32_t>(trace.blocks.size());
  return trace;
}

TEST(Capacity, LoadsAreTokensASecondOfEachWindow) {
  const auto loads = *window_loads(windows_of({10, 0, 20}), kWindow);
  EXPECT_EQ(loads, (std::vector<double>{1010, 0, 2020}));
  const auto whole = *window_loads(windows_of({10, 0, 20}), 3 * kWindow);
  EXPECT_EQ(whole, (std::vector<double>{1010}));
}

TEST(Capacity, TooManyWindowsAreRefused) {
  Trace trace = windows_of({1, 1});
  trace.requests.back().arrival_us = 1'000'000'000'000'000;
  EXPECT_EQ(window_loads(trace, 1'000'000).error().field, "window");
}

TEST(Capacity, ReplicasLieOnLinesBetweenTheRows) {
  // The lower capacity of two replicas is a measurement error: two replicas serve at least as much as one.
  const CapacityTable table({{1, 100}, {2, 90}, {4, 300}});
  EXPECT_EQ(table.replicas_for(0), 1);
  EXPECT_EQ(table.replicas_for(50), 1);
  EXPECT_EQ(table.replicas_for(100), 1);
  EXPECT_EQ(table.replicas_for(101), 3);
  EXPECT_EQ(table.replicas_for(200), 3);
  EXPECT_EQ(table.replicas_for(201), 4);
  EXPECT_EQ(table.replicas_for(300), 4);
  EXPECT_EQ(table.replicas_for(301), 5);
  EXPECT_EQ(table.replicas_for(3000), 40);
}

TEST(Capacity, NothingServedByFewMeansMore) {
  const CapacityTable table({{1, 0}, {2, 0}, {3, 300}});
  EXPECT_EQ(table.replicas_for(1), 3);
  EXPECT_EQ(table.replicas_for(300), 3);
}

TEST(Capacity, IsMeasuredWindowByWindow) {
  // A prompt takes 210 ms, so one replica serves 4 requests/s. This is enough for windows of 20 requests,
  // but not for windows of 120.
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = 200};
  const Trace trace = windows_of({20, 120, 20, 60, 120, 20});
  const Slo slo{.limits = {.ttft_ms = 1000}};
  const auto table = *measure_capacity(options, trace, slo, kWindow, 6, [](int, std::size_t, std::size_t) {});
  const auto& rows = table.rows();
  EXPECT_EQ(rows.front().replicas, 1);
  EXPECT_EQ(rows.front().load, 2020) << "the queues of the full windows do not count";
  EXPECT_EQ(rows.back().replicas, 6);
  EXPECT_EQ(rows.back().load, 12'120);
  EXPECT_TRUE(std::ranges::is_sorted(rows, {}, &Capacity::load));
  EXPECT_EQ(table.replicas_for(2020), 1);
  EXPECT_GT(table.replicas_for(6060), 1);
}

}  // namespace
}  // namespace octavo::fleet
