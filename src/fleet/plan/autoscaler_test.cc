#include "fleet/plan/autoscaler.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
const CapacityTable kTable({{1, 100}});  // one replica per 100 tokens/s
const AutoscalerRules kRules{.scaling = {.replicas_min = 1,
                                         .replicas_max = 8,
                                         .window_us = 10 * kSecond,
                                         .scale_down_delay_us = 30 * kSecond},
                             .ttft_ms = 1000,
                             .tpot_ms = 50};

// A fleet that changes its size at once and is read every second.
struct Watched {
  Autoscaler scaler{kRules, kTable, *find_predictor("constant"), 1, 0};
  std::int64_t now_us = 0;
  int ready = 1;

  // Returns the decision after `seconds` readings with the metrics `each` of each replica. `tokens` is the
  // sum over all replicas.
  AutoscalerState after(int seconds, double tokens, ReplicaReading each = {.ttft_ms = 900, .tpot_ms = 10},
                        int silent = 0) {
    AutoscalerState state;
    for (int i = 0; i < seconds; ++i) {
      each.tokens = tokens / ready;
      each.finished = each.tokens / 50;
      now_us += kSecond;
      state = scaler.read(now_us, std::vector(static_cast<std::size_t>(ready), each), silent);
      ready = state.replicas;
    }
    return state;
  }
};

TEST(Autoscaler, FollowsTheLoadUpAtOnceAndDownAfterTheDelay) {
  Watched fleet;
  EXPECT_EQ(fleet.after(9, 350).replicas, 1) << "the window has not ended";
  const AutoscalerState up = fleet.after(1, 350);
  EXPECT_EQ(up.replicas, 4);
  EXPECT_EQ(up.reason, "load");
  EXPECT_NEAR(up.load, 350, 1);
  EXPECT_EQ(fleet.after(39, 50).replicas, 4);
  EXPECT_EQ(fleet.after(1, 50).replicas, 1);
  EXPECT_EQ(fleet.after(10, 5000).replicas, 8) << "the most";
}

TEST(Autoscaler, ScalesToZeroWithoutRequestsAndBackForTheFirstOne) {
  AutoscalerRules rules = kRules;
  rules.scaling.replicas_min = 0;
  Autoscaler scaler(rules, kTable, *find_predictor("trend"), 2, 0);
  std::int64_t now_us = 0;
  const auto after = [&](int seconds, int ready, ReplicaReading each, double queued = 0) {
    for (int i = 0; i < seconds; ++i)
      scaler.read(now_us += kSecond, std::vector(static_cast<std::size_t>(ready), each), 0, queued);
    return scaler.state();
  };
  EXPECT_EQ(after(10, 2, {.tokens = 10}).replicas, 2);
  EXPECT_EQ(after(60, 1, {.running = 1}).replicas, 1) << "a request that makes no token yet";
  EXPECT_EQ(after(60, 1, {}).replicas, 0);
  EXPECT_EQ(after(60, 0, {}).replicas, 0);
  const AutoscalerState first = after(1, 0, {}, 1);
  EXPECT_EQ(first.replicas, 1) << "at once";
  EXPECT_EQ(first.reason, "queued");
  EXPECT_EQ(after(20, 0, {}, 1).replicas, 1) << "it starts";
  EXPECT_EQ(after(20, 1, {.tokens = 10}).replicas, 1);
  EXPECT_EQ(after(60, 1, {}).replicas, 0);
}

TEST(Autoscaler, WhatWaitsInARouterCountsAsLoad) {
  Autoscaler scaler(kRules, kTable, *find_predictor("constant"), 1, 0);
  for (int second = 1; second <= 10; ++second)
    scaler.read(second * kSecond, std::vector{ReplicaReading{.tokens = 100, .finished = 2}}, 0, 40);
  EXPECT_EQ(scaler.state().replicas, 3) << "40 requests of 50 tokens more than were answered";
}

TEST(Autoscaler, WhatWaitsCountsAsLoad) {
  Watched fleet;
  EXPECT_EQ(fleet.after(10, 100, {.waiting = 40, .ttft_ms = 900}).replicas, 3)
      << "40 requests of 50 tokens came in these ten seconds beside those that were answered";
  EXPECT_NEAR(fleet.after(10, 100, {.waiting = 40.0 / 3, .ttft_ms = 900}).load, 100, 1) << "no more came";
}

TEST(Autoscaler, AddsOneWhereAllAreLateAndTakesItBackWhenAllAreEarly) {
  Watched fleet;
  EXPECT_EQ(fleet.after(1, 80, {.ttft_ms = 1001, .tpot_ms = 10}).replicas, 2);
  EXPECT_EQ(fleet.after(1, 80, {.ttft_ms = 900, .tpot_ms = 51}).reason, "late");
  EXPECT_EQ(fleet.ready, 3);
  EXPECT_EQ(fleet.after(60, 80, {.ttft_ms = 900, .tpot_ms = 10}).replicas, 3)
      << "0.9 of the limit is not well within";
  EXPECT_EQ(fleet.after(29, 80, {.ttft_ms = 700, .tpot_ms = 10}).replicas, 3);
  const AutoscalerState down = fleet.after(2, 80, {.ttft_ms = 700, .tpot_ms = 10});
  EXPECT_EQ(down.replicas, 2);
  EXPECT_EQ(down.reason, "early");
  EXPECT_EQ(fleet.after(28, 80, {.ttft_ms = 700}).replicas, 2) << "one at a time";
  EXPECT_EQ(fleet.after(100, 80, {.ttft_ms = 700}).replicas, 1) << "the load needs one";
}

TEST(Autoscaler, OneThatIsNotLateHoldsAnotherBack) {
  Autoscaler scaler(kRules, kTable, *find_predictor("constant"), 2, 0);
  const std::vector<ReplicaReading> one_late{{.ttft_ms = 5000}, {}};
  for (int i = 1; i < 5; ++i) EXPECT_EQ(scaler.read(i * kSecond, one_late, 0).replicas, 2);
  const std::vector<ReplicaReading> late{{.ttft_ms = 5000}, {.tpot_ms = 60}};
  EXPECT_EQ(scaler.read(6 * kSecond, late, 0).replicas, 3);
  for (int i = 7; i < 9; ++i)
    EXPECT_EQ(scaler.read(i * kSecond, late, 0).replicas, 3) << "the third has not come yet";
  EXPECT_EQ(scaler.read(9 * kSecond, late, 0).ready, 2);
}

TEST(Autoscaler, RemovesNothingWhileItDoesNotKnow) {
  Watched fleet;
  fleet.after(10, 350);
  EXPECT_EQ(fleet.after(100, 0, {}, 1).replicas, 4);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fleet.scaler.read(fleet.now_us += kSecond, {}, 0).replicas, 4);
  EXPECT_EQ(fleet.after(60, 0).replicas, 1);
}

TEST(Autoscaler, DoesNotFlap) {
  Watched fleet;
  int changes = 0, before = 1;
  for (int i = 0; i < 60; ++i) {
    fleet.after(10, i % 2 ? 95 : 305);
    changes += fleet.ready != before;
    before = fleet.ready;
  }
  EXPECT_EQ(changes, 1);
}

}  // namespace
}  // namespace octavo::fleet
