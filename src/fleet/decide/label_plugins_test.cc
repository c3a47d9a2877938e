// Tests of the plugins that read endpoints' labels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <map>

#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

// Makes one endpoint for each entry of `labels`, and returns the endpoints that the filter keeps.
std::vector<EndpointId> left(PluginConfig filter, std::vector<std::map<std::string, std::string>> labels,
                             RouteRequest request = prompt("p")) {
  TestFleet fleet(0);
  for (auto& each : labels) {
    const std::string name = fmt::format("10.0.0.{}:8000", fleet.fleet.view()->members.size());
    CHECK(fleet.fleet.add({.name = name, .url = "http://" + name, .labels = std::move(each)}));
  }
  fleet.fleet.update([](Member& m) { return (m.state.availability = Availability::available, true); });
  auto policy = pipeline({filter}, {{filter.type}});
  std::vector<EndpointId> ids = fleet.rank(policy, request);
  std::ranges::sort(ids);
  return ids;
}

TEST(Plugins, ContextLengthFitsTheLabelsRange) {
  TestFleet fleet(0);
  for (const char* range : {"0-99", "100-199", "", "x"}) {
    const std::string name = "replica-" + std::to_string(fleet.fleet.view()->members.size()) + ":1";
    Endpoint endpoint{.name = name, .url = "http://" + name};
    if (*range) endpoint.labels["llm-d.ai/context-length-range"] = range;
    ASSERT_TRUE(fleet.fleet.add(endpoint));
  }
  fleet.fleet.update([](Member& m) { return (m.state.availability = Availability::available, true); });
  const RouteRequest request = prompt(std::string(4 * 100, 'a'));  // 100 tokens
  auto scored = pipeline({{"", "context-length-aware"}}, {{"context-length-aware"}});
  const auto seen = scores(fleet, scored, request);
  EXPECT_LT(seen[0], 0.3);
  EXPECT_EQ(seen[1], 1);
  EXPECT_EQ(seen[2], 0.5);
  EXPECT_EQ(seen[3], 0.5) << "a label that is no range is none";
  auto filtered =
      pipeline({{"", "context-length-aware", {{"enableFiltering", true}}}}, {{"context-length-aware"}});
  EXPECT_THAT(fleet.rank(filtered, request), testing::UnorderedElementsAre(1, 2, 3));
}

TEST(Plugins, RolesAreLabels) {
  const std::vector<std::map<std::string, std::string>> labels{
      {{"llm-d.ai/role", "prefill"}}, {{"llm-d.ai/role", "decode"}},         {{"llm-d.ai/role", "both"}},
      {{"llm-d.ai/role", "encode"}},  {{"llm-d.ai/role", "encode-prefill"}}, {}};
  EXPECT_THAT(left({"", "decode-filter"}, labels), ElementsAre(1, 2, 5));
  EXPECT_THAT(left({"", "prefill-filter"}, labels), ElementsAre(0, 2, 4));
  EXPECT_THAT(left({"", "encode-filter"}, labels), ElementsAre(3, 4));
  EXPECT_THAT(left({"", "decode-filter"}, {{{"llm-d.ai/role", "prefill"}}}), ElementsAre())
      << "nobody is left";
}

TEST(Plugins, LabelSelectorsAreKubernetes) {
  const std::vector<std::map<std::string, std::string>> labels{
      {{"gpu", "h200"}, {"zone", "a"}}, {{"gpu", "h100"}}, {}};
  const auto expression = [](const char* op, boost::json::array values) {
    boost::json::object each{{"key", "gpu"}, {"operator", op}};
    if (!values.empty()) each["values"] = std::move(values);
    return PluginConfig{"", "label-selector-filter", {{"matchExpressions", boost::json::array{each}}}};
  };
  EXPECT_THAT(
      left({"", "label-selector-filter", {{"matchLabels", boost::json::object{{"gpu", "h200"}}}}}, labels),
      ElementsAre(0));
  EXPECT_THAT(left(expression("In", {"h100", "b200"}), labels), ElementsAre(1));
  EXPECT_THAT(left(expression("NotIn", {"h100"}), labels), ElementsAre(0, 2));
  EXPECT_THAT(left(expression("Exists", {}), labels), ElementsAre(0, 1));
  EXPECT_THAT(left(expression("DoesNotExist", {}), labels), ElementsAre(2));
  for (const PluginConfig& wrong :
       {expression("Is", {"x"}), expression("In", {}), expression("Exists", {"x"}), expression("In", {7})})
    EXPECT_EQ(Plugins::make(std::span(&wrong, 1)).error().field, "plugins[0].parameters.matchExpressions");
}

TEST(Plugins, ATestNamesItsEndpoints) {
  RouteRequest request = prompt("p");
  request.headers = {{"test-epp-endpoint-selection", "10.0.0.1, 10.0.0.2:8000,10.0.0.0:9"}};
  EXPECT_THAT(left({"", "header-based-testing-filter"}, {{}, {}, {}}, request), ElementsAre(1, 2));
  EXPECT_THAT(left({"", "header-based-testing-filter"}, {{}, {}, {}}), ElementsAre(0, 1, 2));
}

TEST(Plugins, ALabelHasOneOfTheseValues) {
  const std::vector<std::map<std::string, std::string>> labels{{{"gpu", "h200"}}, {{"gpu", "h100"}}, {}};
  const auto config = [](bool none) {
    return PluginConfig{
        "",
        "by-label",
        {{"label", "gpu"}, {"validValues", boost::json::array{"h100"}}, {"allowsNoLabel", none}}};
  };
  EXPECT_THAT(left(config(false), labels), ElementsAre(1));
  EXPECT_THAT(left(config(true), labels), ElementsAre(1, 2));
}

TEST(Topology, WhoComputesAPromptIsNearToWhoAnswersIt) {
  PipelineConfig config{{{"", "topology-extractor", {{"rack", "rack"}}},
                         {"", "topology-affinity-filter", {{"minAffinity", "zone"}}},
                         {"", "topology-affinity-scorer"}},
                        {}};
  config.prefill = PrefillRule{.steps = {{"topology-affinity-filter"}, {"topology-affinity-scorer"}}};
  Pipeline policy = *Pipeline::make(std::move(config));
  TestFleet fleet(5);
  const std::string zone = "topology.kubernetes.io/zone", host = "kubernetes.io/hostname";
  const std::map<std::string, std::string> labels[] = {{{zone, "a"}, {"rack", "1"}, {host, "h"}},
                                                       {{zone, "a"}},
                                                       {{zone, "b"}},
                                                       {{zone, "a"}, {"rack", "1"}},
                                                       {{host, ""}}};
  const auto members = fleet.fleet.view()->members;
  for (std::size_t i = 0; i < std::size(labels); ++i) {
    Endpoint endpoint = *members[i].endpoint;
    endpoint.labels = labels[i];
    fleet.fleet.describe(members[i].id, std::move(endpoint));
  }
  const auto ranked = [&](EndpointId answering, std::vector<EndpointId> among) {
    const auto view = fleet.fleet.view();
    const RouteRequest request = prompt("p");
    Cycle cycle{*view, request, fleet.inflight, fleet.pace, 0, Draws(1)};
    Candidates candidates;
    for (const EndpointId id : among) candidates.push_back(view->find(id));
    policy.rank_prefill(cycle, answering, candidates, fleet.decision);
    std::vector<std::pair<EndpointId, double>> out;
    for (const Score& score : fleet.decision.ranking) out.emplace_back(score.endpoint, score.total);
    return out;
  };
  using Ranked = std::vector<std::pair<EndpointId, double>>;
  EXPECT_EQ(ranked(0, {1, 2, 3}), (Ranked{{3, .2}, {1, .05}}))
      << "one rack, one zone; another zone is too far";
  EXPECT_EQ(ranked(0, {0}), (Ranked{{0, 1}}));
  EXPECT_EQ(ranked(4, {0, 1}).size(), 2U) << "nobody is near: all are left";
}

}  // namespace
}  // namespace octavo::fleet
