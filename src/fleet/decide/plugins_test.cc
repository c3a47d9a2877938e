#include "fleet/decide/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fleet/decide/pipeline.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

Pipeline pipeline(std::vector<PluginConfig> plugins, std::vector<StepConfig> steps) {
  auto made = Pipeline::make({std::move(plugins), std::move(steps)});
  CHECK(made, "{}", made.error().message);
  return *std::move(made);
}

// The score of each endpoint, of the only scorer.
std::vector<double> scores(TestFleet& fleet, Pipeline& policy, const RouteRequest& request = prompt("p")) {
  fleet.decision.explain = true;
  fleet.rank(policy, request);
  std::vector<double> by_endpoint(fleet.fleet.view()->id_limit);
  for (const Score& s : fleet.decision.steps.back().scores) by_endpoint[s.endpoint] = s.total;
  return by_endpoint;
}

TEST(PluginTable, TypesAreThereOnceAndMakeThemselvesFromDefaults) {
  std::set<std::string_view> types;
  for (const PluginRow& row : plugin_table()) {
    EXPECT_TRUE(types.insert(row.type).second) << row.type;
    const PluginConfig config{.name = "x", .type = std::string(row.type)};
    EXPECT_TRUE(Plugins::make(std::span(&config, 1))) << row.type;
  }
}

TEST(Plugins, MistakesNameTheField) {
  const auto field = [](std::vector<PluginConfig> plugins, std::vector<StepConfig> steps = {}) {
    return Pipeline::make({std::move(plugins), std::move(steps)}).error().field;
  };
  EXPECT_EQ(field({{"", "queue-scorerr"}}), "plugins[0].type");
  EXPECT_EQ(field({{"", "queue-scorer"}, {"", "queue-scorer"}}), "plugins[1].name");
  EXPECT_EQ(field({{"", "queue-scorer", {{"x", 1}}}}), "plugins[0].parameters.x");
  EXPECT_EQ(field({}, {{"queue-scorer"}}), "policy.plugins[0].pluginRef");
  EXPECT_EQ(field({{"", "queue-scorer"}}, {{"queue-scorer", -1}}), "policy.plugins[0].weight");
  EXPECT_EQ(
      field({{"", "random-picker"}, {"", "round-robin-picker"}}, {{"random-picker"}, {"round-robin-picker"}}),
      "policy.plugins[1].pluginRef");
  EXPECT_EQ(field({{"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", "nobody"}}}}),
            "plugins[0].parameters.prefixMatchInfoProducerName");
  EXPECT_EQ(field({{"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", "queue-scorer"}}}}),
            "plugins[0].parameters.prefixMatchInfoProducerName");
}

TEST(Plugins, QueueAndRunningScoreTheLeastHighest) {
  TestFleet fleet(3);
  fleet.fleet.update([](Member& m) {
    m.state.waiting = static_cast<int>(m.id) * 10;
    m.state.running = 4;
    return true;
  });
  auto queue = pipeline({{"", "queue-scorer"}}, {{"queue-scorer"}});
  EXPECT_THAT(scores(fleet, queue), ElementsAre(1, 0.5, 0));
  auto running = pipeline({{"", "running-requests-size-scorer"}}, {{"running-requests-size-scorer"}});
  EXPECT_THAT(scores(fleet, running), ElementsAre(1, 1, 1));
}

TEST(Plugins, ActiveRequestsScoreByWhatIsInFlight) {
  TestFleet fleet(3);
  for (int i = 0; i < 4; ++i) fleet.inflight.book(2, 1, 1);
  fleet.inflight.book(1, 1, 1);
  auto policy = pipeline({{"", "active-request-scorer"}}, {{"active-request-scorer"}});
  EXPECT_THAT(scores(fleet, policy), ElementsAre(1, 0.75, 0));
}

TEST(Plugins, WeightsAddUp) {
  TestFleet fleet(2);
  fleet.fleet.update([](Member& m) {
    m.state.waiting = m.id == 0 ? 5 : 0;     // queue: 0, 1
    m.state.kv_usage = m.id == 0 ? 0 : 0.9;  // free: 1, 0.1
    return true;
  });
  const std::vector<PluginConfig> plugins{{"", "queue-scorer"}, {"", "kv-cache-utilization-scorer"}};
  auto queue_counts = pipeline(plugins, {{"queue-scorer", 2}, {"kv-cache-utilization-scorer", 1}});
  EXPECT_THAT(fleet.rank(queue_counts, prompt("p")), ElementsAre(1, 0));
  auto kv_counts = pipeline(plugins, {{"queue-scorer", 1}, {"kv-cache-utilization-scorer", 2}});
  EXPECT_THAT(fleet.rank(kv_counts, prompt("p")), ElementsAre(0, 1));
}

TEST(Plugins, PrefixCacheScoresTheShareThatWasSent) {
  TestFleet fleet(2);
  auto policy = pipeline({{"", "prefix-cache-scorer"}}, {{"prefix-cache-scorer"}});
  const std::string shared(64 * 4 * 3, 'a');  // three blocks of 64 tokens of 4 bytes
  const auto first = fleet.send(policy, prompt(shared)).endpoint;
  auto seen = scores(fleet, policy, prompt(shared + std::string(64 * 4, 'b')));
  EXPECT_EQ(seen[first], 0.75);
  EXPECT_EQ(seen[1 - first], 0);
  policy.forget(first);
  EXPECT_EQ(scores(fleet, policy, prompt(shared))[first], 0);
}

TEST(Plugins, PrefixesAreRememberedOfAnEndpointThatDoesNotSayHowLargeItsBlocksAre) {
  TestFleet fleet(2);
  fleet.fleet.update([](Member& m) { return (m.state.num_blocks = 1000, true); });
  auto policy = pipeline({{"", "prefix-cache-scorer"}}, {{"prefix-cache-scorer"}});
  const std::string text(64 * 4, 'a');
  const auto first = fleet.send(policy, prompt(text)).endpoint;
  EXPECT_EQ(scores(fleet, policy, prompt(text))[first], 1);
}

TEST(Plugins, APickerPicksAsManyAsItIsTold) {
  TestFleet fleet(3);
  const auto picked = [&](PluginConfig picker) {
    auto policy = pipeline({picker}, {{picker.type}});
    EXPECT_EQ(fleet.rank(policy, prompt("p")).size(), 3U);
    return fleet.decision.picked;
  };
  for (const char* type : {"max-score-picker", "random-picker", "round-robin-picker", "softmax-picker"}) {
    EXPECT_EQ(picked({"", type}), 1U) << type;
    EXPECT_EQ(picked({"", type, {{"maxNumOfEndpoints", 2}}}), 2U) << type;
    EXPECT_EQ(picked({"", type, {{"maxNumOfEndpoints", 9}}}), 3U) << type;
  }
}

TEST(Plugins, SoftmaxDrawsTheBetterMoreOften) {
  TestFleet fleet(3);
  fleet.fleet.update([](Member& m) { return (m.state.kv_usage = 0.5 * m.id, true); });
  auto policy = pipeline({{"", "kv-cache-utilization-scorer"}, {"", "softmax-picker", {{"temperature", 1}}}},
                         {{"kv-cache-utilization-scorer"}, {"softmax-picker"}});
  std::map<EndpointId, int> counts;
  for (int i = 0; i < 30'000; ++i) ++counts[fleet.rank(policy, prompt("p"))[0]];
  const double e = std::exp(-0.5), total = 1 + e + e * e;
  EXPECT_NEAR(counts[0], 30'000 / total, 400);
  EXPECT_NEAR(counts[1], 30'000 * e / total, 400);
  EXPECT_NEAR(counts[2], 30'000 * e * e / total, 400);
}

}  // namespace
}  // namespace octavo::fleet
