#include "fleet/flow/flow_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kSecond = 1'000'000;

std::vector<std::uint64_t> all_in_order(FlowControl& flow) {
  std::vector<std::uint64_t> ids;
  while (const auto item = flow.next(0, 0)) ids.push_back(item->id);
  return ids;
}

TEST(FlowControl, HigherBandsGoFirst) {
  FlowControl flow({});
  for (const auto& [id, priority] : {std::pair(1U, 0), {2U, 10}, {3U, -5}, {4U, 10}, {5U, 0}})
    EXPECT_FALSE(flow.enqueue({.id = id, .priority = priority, .arrived_us = id}, false));
  EXPECT_EQ(flow.waiting(), 5U);
  EXPECT_THAT(all_in_order(flow), ElementsAre(2, 4, 1, 5, 3));
  EXPECT_EQ(flow.waiting(), 0U);
}

TEST(FlowControl, NothingGoesWhileAllIsTaken) {
  FlowControl flow({.usage_limit = static_usage_limit(0.9)});
  flow.enqueue({.id = 1}, false);
  EXPECT_FALSE(flow.next(1, 0));
  EXPECT_FALSE(flow.next(0.9, 0));
  EXPECT_TRUE(flow.next(0.89, 0));
  EXPECT_FALSE(flow.next(0, 0));
}

TEST(FlowControl, BandsThatWaitForRoomAreTold) {
  FlowControl flow({.usage_limit = static_usage_limit(0.9)});
  EXPECT_TRUE(flow.blocked(1).empty());
  flow.enqueue({.id = 1, .priority = -1}, false);
  flow.enqueue({.id = 2, .priority = 5}, false);
  EXPECT_FALSE(flow.next(1, 0));
  const auto blocked = flow.blocked(1);
  ASSERT_EQ(blocked.size(), 2U);
  EXPECT_EQ(blocked[0].priority, 5);
  EXPECT_EQ(blocked[0].ceiling, 0.9);
  EXPECT_EQ(blocked[1].priority, -1);
  EXPECT_TRUE(flow.next(0.5, 0));
  EXPECT_TRUE(flow.blocked(0.5).empty());
}

TEST(FlowControl, OrderingWithinAFlow) {
  const auto order = [](const char* type) {
    FlowControl flow({.default_band = {.ordering = find_ordering(type)}});
    flow.enqueue({.id = 1, .arrived_us = 30}, false);
    flow.enqueue({.id = 2, .arrived_us = 10, .ttft_slo_us = 100}, false);
    flow.enqueue({.id = 3, .arrived_us = 20, .ttft_slo_us = 50}, false);
    flow.enqueue({.id = 4, .arrived_us = 20, .ttft_slo_us = 50}, false);
    return all_in_order(flow);
  };
  EXPECT_THAT(order("fcfs-ordering-policy"), ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(order("edf-ordering-policy"), ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(order("slo-deadline-ordering-policy"), ElementsAre(3, 4, 2, 1));
  EXPECT_EQ(find_ordering("nobody's"), nullptr);
  EXPECT_EQ(find_fairness("nobody's"), nullptr);
}

TEST(FlowControl, FairnessAmongFlows) {
  const auto order = [](const char* type) {
    FlowControl flow({.default_band = {.fairness = make_fairness(type)}});
    std::uint64_t id = 0;
    for (const char* who : {"a", "a", "a", "c", "b", "b"})
      flow.enqueue({.id = ++id, .fairness_id = who, .arrived_us = static_cast<std::int64_t>(id)}, false);
    return all_in_order(flow);
  };
  EXPECT_THAT(order("global-strict-fairness-policy"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(order("round-robin-fairness-policy"), ElementsAre(1, 5, 4, 2, 6, 3));
}

TEST(FlowControl, BandsHaveRoomForSoMuch) {
  FlowControl flow(
      {.bytes_max = 50,
       .requests_max = 4,
       .bands = {{1, {.bytes_max = 30, .requests_max = 2}}, {2, {.bytes_max = 0, .requests_max = 0}}}});
  EXPECT_FALSE(flow.enqueue({.id = 1, .priority = 1, .bytes = 20}, false));
  EXPECT_EQ(flow.enqueue({.id = 2, .priority = 1, .bytes = 11}, false), FlowOutcome::rejected_capacity);
  EXPECT_EQ(flow.enqueue({.id = 2, .priority = 1, .bytes = 11}, true), FlowOutcome::rejected_no_endpoints);
  EXPECT_FALSE(flow.enqueue({.id = 2, .priority = 1, .bytes = 10}, false));
  EXPECT_EQ(flow.enqueue({.id = 3, .priority = 1}, false), FlowOutcome::rejected_capacity)
      << "a third request";
  EXPECT_EQ(flow.enqueue({.id = 3, .priority = 2, .bytes = 21}, false), FlowOutcome::rejected_capacity)
      << "in all";
  EXPECT_FALSE(flow.enqueue({.id = 3, .priority = 2, .bytes = 20}, false));
  EXPECT_FALSE(flow.enqueue({.id = 4, .priority = 2}, false));
  EXPECT_EQ(flow.enqueue({.id = 5, .priority = 2}, false), FlowOutcome::rejected_capacity)
      << "a fifth request";
  EXPECT_EQ(all_in_order(flow).size(), 4U);
  for (const FlowControl::BandLoad& load : flow.loads()) EXPECT_EQ(load.bytes + load.requests, 0U);
  EXPECT_FALSE(flow.enqueue({.id = 6, .priority = 1, .bytes = 30}, false)) << "what has gone makes room";
}

TEST(FlowControl, NobodyWaitsForeverAndEverybodyIsToldOnce) {
  FlowControl flow({.ttl_us = 10 * kSecond, .no_endpoint_ttl_us = 20 * kSecond});
  for (std::uint64_t id = 1; id <= 4; ++id)
    flow.enqueue({.id = id, .arrived_us = static_cast<std::int64_t>(id) * kSecond}, false);
  EXPECT_TRUE(flow.expire(11 * kSecond - 1, false).empty());
  EXPECT_TRUE(flow.expire(12 * kSecond, true).empty()) << "without endpoints they may wait longer";
  auto ended = flow.expire(12 * kSecond, false);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].item.id, 1U);
  EXPECT_EQ(ended[1].outcome, FlowOutcome::evicted_ttl);
  EXPECT_EQ(flow.expire(23 * kSecond, true)[0].outcome, FlowOutcome::evicted_no_endpoints);
  EXPECT_EQ(flow.cancel(4)->outcome, FlowOutcome::evicted_context_cancelled);
  EXPECT_FALSE(flow.cancel(4));
  EXPECT_FALSE(flow.next(0, 0));
  flow.enqueue({.id = 5}, false);
  EXPECT_EQ(flow.drain()[0].outcome, FlowOutcome::evicted_other);
  EXPECT_EQ(flow.waiting(), 0U);
}

TEST(FlowControl, ABandMayLetItsRequestsWaitLonger) {
  BandOptions longer, for_ever;
  longer.ttl_us = 100 * kSecond;
  for_ever.ttl_us = 0;
  FlowControl flow({.ttl_us = 10 * kSecond, .bands = {{-1, longer}, {1, for_ever}}});
  for (const int priority : {-1, 0, 1}) {
    FlowItem item{.id = static_cast<std::uint64_t>(priority + 2), .priority = priority};
    EXPECT_FALSE(flow.enqueue(std::move(item), false));
  }
  const auto late = flow.expire(10 * kSecond, false);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].item.priority, 0);
  ASSERT_EQ(flow.expire(100 * kSecond, false).size(), 1U);
  EXPECT_TRUE(flow.expire(100'000 * kSecond, false).empty()) << "0: for ever";
  EXPECT_EQ(flow.waiting(), 1U);
}

// Ten tenants send requests to three bands for five minutes, at four times the rate that can be served.
TEST(FlowControl, UnderOverloadBandsAreStrictAndTenantsOfABandEqual) {
  constexpr int kTenants = 10;
  constexpr std::int64_t kServe = 10'000;  // microseconds for each request, so 100 requests per second
  constexpr std::int64_t kArrive = 2'500;  // microseconds between arrivals, so 400 requests per second
  constexpr std::int64_t kEnd = 300 * kSecond;
  const BandOptions fair{.requests_max = 100'000, .fairness = make_fairness("round-robin-fairness-policy")};
  FlowControl flow({.ttl_us = 5 * kSecond, .bands = {{2, fair}, {1, fair}, {0, fair}}});
  std::map<int, std::map<std::string, double>> served;
  std::uint64_t requested = 0, outcomes = 0;
  std::map<int, int> waiting;  // by band
  for (std::int64_t now = 0; now < kEnd; now += kArrive) {
    // A tenth of the requests is for band 2, an eighth for band 1. All of these can be served. Band 0 gets
    // the remaining capacity.
    const double which = random_unit(1, requested);
    const int band = which < 0.1 ? 2 : which < 0.225 ? 1 : 0;
    const double skewed = random_unit(2, requested) * random_unit(3, requested);
    const std::string tenant = std::to_string(static_cast<int>(skewed * kTenants));
    ++requested;
    ++waiting[band];
    ASSERT_FALSE(
        flow.enqueue({.id = requested, .priority = band, .fairness_id = tenant, .arrived_us = now}, false));
    for (const auto& ended : flow.expire(now, false)) {
      ++outcomes;
      --waiting[ended.item.priority];
      EXPECT_GE(now - ended.item.arrived_us, 5 * kSecond);
      EXPECT_LE(now - ended.item.arrived_us, 5 * kSecond + kArrive);
    }
    if (now % kServe != 0) continue;
    if (const auto item = flow.next(0.5, 0)) {
      ++outcomes;
      --waiting[item->priority];
      for (const auto& [other, count] : waiting) {
        if (other > item->priority) {
          EXPECT_EQ(count, 0) << "a lower band went before a higher one";
        }
      }
      served[item->priority][item->fairness_id] += 1;
    }
  }
  EXPECT_EQ(outcomes + flow.drain().size(), requested);
  // Band 0 receives more requests than can be served. All tenants that send at least their fair share get the
  // same number of served requests.
  double sum = 0, squares = 0;
  for (const auto& [tenant, count] : served[0]) {
    sum += count;
    squares += count * count;
  }
  EXPECT_EQ(served[0].size(), static_cast<std::size_t>(kTenants));
  EXPECT_GE(sum * sum / (kTenants * squares), 0.95) << "Jain's index";
  EXPECT_GT(sum, 1000);
}

}  // namespace
}  // namespace octavo::fleet
