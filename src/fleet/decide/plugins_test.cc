#include "fleet/decide/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "fleet/decide/kv_source.h"
#include "fleet/decide/pipeline.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/session.h"
#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

// Required parameters of each plugin type.
const std::map<std::string_view, boost::json::object> kNeeded{
    {"endpoint-attribute-filter",
     {{"attribute", "GPUUtilization"},
      {"producer", "dcgm-extractor"},
      {"algorithm", {{"type", "threshold"}, {"threshold", {{"operator", "LessThanOrEqual"}, {"value", 0.9}}}}}}},
    {"endpoint-attribute-scorer",
     {{"attributeKey", "depth"}, {"algorithm", {{"type", "linear_lower_is_better"}}}}},
    {"by-label", {{"label", "gpu"}, {"validValues", boost::json::array{"h100"}}}},
    {"header-label-affinity-scorer", {{"headerName", "X-Tier"}, {"labelKey", "tier"}}},
    {"session-id-producer", {{"cookieName", "sid"}}},
    {"utilization-filter",
     {{"conditions", boost::json::array{{{"metric", "waiting-queue"}, {"maxValue", 3}}}}}},
};

TEST(PluginTable, TypesAreThereOnceAndMakeThemselvesFromDefaults) {
  std::set<std::string_view> types;
  for (const PluginRow& row : plugin_table()) {
    EXPECT_TRUE(types.insert(row.type).second) << row.type;
    PluginConfig config{.name = "x", .type = std::string(row.type)};
    if (kNeeded.contains(row.type)) {
      EXPECT_FALSE(Plugins::make(std::span(&config, 1))) << row.type;
      config.parameters = kNeeded.at(row.type);
    }
    EXPECT_TRUE(Plugins::make(std::span(&config, 1))) << row.type;
  }
}

PluginConfig needed(std::string type) { return {"", type, kNeeded.at(type)}; }

TEST(Plugins, LimitsOnFiguresTakeEndpointsAway) {
  TestFleet fleet(3);
  Pipeline policy = pipeline({needed("utilization-filter")}, {{"utilization-filter"}});
  fleet.fleet.update(1, [](EndpointState& s) { s.waiting = 4; });
  EXPECT_THAT(fleet.rank(policy, prompt("p")), testing::UnorderedElementsAre(0, 2));
  for (const EndpointId id : {0, 2}) fleet.fleet.update(id, [](EndpointState& s) { s.waiting = 4; });
  EXPECT_TRUE(fleet.rank(policy, prompt("p")).empty());
  for (const EndpointId id : {0, 1, 2}) fleet.inflight.book(id, 1, 1);
  Pipeline full =
      pipeline({{"", "concurrency-detector", {{"maxConcurrency", 1}}}}, {{"concurrency-detector"}});
  EXPECT_TRUE(fleet.rank(full, prompt("p")).empty());
  Pipeline all = pipeline({{"", "utilization-detector"}}, {{"utilization-detector"}});
  EXPECT_EQ(fleet.rank(all, prompt("p")).size(), 3U) << "nobody can take more: all are left";
}

void set_attribute(TestFleet& fleet, EndpointId id, AttributeKey key, double value) {
  fleet.fleet.update(id, [&](EndpointState& s) {
    s.attributes = std::make_shared<const Attributes>(Attributes{{std::move(key), value}});
  });
}

TEST(Plugins, AThresholdOnAnAttributeTakesEndpointsAway) {
  const AttributeKey busy{"GPUUtilization", "dcgm-extractor"};
  TestFleet fleet(3);
  PluginConfig config = needed("endpoint-attribute-filter");
  const auto left = [&] {
    Pipeline policy = pipeline({config}, {{"endpoint-attribute-filter"}});
    return fleet.rank(policy, prompt("p")).size();
  };
  EXPECT_EQ(left(), 3U) << "nobody's is known: all pass";
  set_attribute(fleet, 0, busy, 0.95);
  set_attribute(fleet, 1, busy, 0.9);
  EXPECT_EQ(left(), 2U);
  config.parameters["onMissing"] = "Fail";
  EXPECT_EQ(left(), 1U);
  set_attribute(fleet, 1, busy, 0.91);
  EXPECT_EQ(left(), 0U);
  config.parameters["fallbackOnEmpty"] = true;
  EXPECT_EQ(left(), 3U);
  config.parameters["fallbackOnEmpty"] = false;
  const auto passes = [&](const char* compare, double value) {
    config.parameters["algorithm"].at("threshold") = {{"operator", compare}, {"value", value}};
    return left();
  };
  EXPECT_EQ(passes("LessThan", 0.95), 1U);
  EXPECT_EQ(passes("GreaterThan", 0.91), 1U);
  EXPECT_EQ(passes("GreaterThanOrEqual", 0.91), 2U);
  EXPECT_EQ(passes("Equal", 0.95), 1U);
  EXPECT_EQ(passes("NotEqual", 0.5), 2U);
}

TEST(Plugins, AnAttributeScoresWithinItsRange) {
  const AttributeKey depth{"depth", "core-metrics-extractor"};
  TestFleet fleet(4);
  PluginConfig config = needed("endpoint-attribute-scorer");
  const auto scored = [&] {
    Pipeline policy = pipeline({config}, {{"endpoint-attribute-scorer"}});
    return scores(fleet, policy);
  };
  set_attribute(fleet, 0, depth, 10);
  set_attribute(fleet, 1, depth, 10);
  EXPECT_THAT(scored(), ElementsAre(1, 1, 0, 0)) << "of two nothing is known";
  set_attribute(fleet, 1, depth, 14);
  set_attribute(fleet, 2, depth, 11);
  EXPECT_THAT(scored(), ElementsAre(1, 0, 0.75, 0));
  auto& algorithm = config.parameters["algorithm"].as_object();
  algorithm["type"] = "linear_higher_is_better";
  EXPECT_THAT(scored(), ElementsAre(0, 1, 0.25, 0));
  algorithm["normalization"] = {{"fixedRange", {{"min", 12}, {"max", 20}}}};
  EXPECT_THAT(scored(), ElementsAre(0, 0.25, 0, 0));
  set_attribute(fleet, 3, depth, 100);
  EXPECT_THAT(scored(), ElementsAre(0, 0.25, 0, 1)) << "clamped";
}

TEST(Plugins, AttributesAreNamedWithWhoFindsThem) {
  const auto field = [](std::string_view type, const char* name, boost::json::value value) {
    PluginConfig config = needed(std::string(type));
    config.parameters[name] = std::move(value);
    const auto made = Plugins::make(std::span(&config, 1));
    return made ? std::string() : made.error().field.substr(made.error().field.rfind("parameters") + 11);
  };
  EXPECT_EQ(field("endpoint-attribute-filter", "attribute", ""), "attribute");
  EXPECT_EQ(field("endpoint-attribute-filter", "producer", "queue-scorer"), "producer");
  EXPECT_EQ(field("endpoint-attribute-scorer", "attributeKey", "a/b"), "producer");
  EXPECT_EQ(field("endpoint-attribute-scorer", "attributeKey", "GPUUtilization/dcgm-extractor"), "");
  EXPECT_EQ(field("endpoint-attribute-filter", "onMissing", "Perhaps"), "onMissing");
  EXPECT_EQ(field("endpoint-attribute-filter", "algorithm", {{"type", "topK"}}), "algorithm.type");
  EXPECT_EQ(field("endpoint-attribute-filter", "algorithm", {{"type", "threshold"}}), "algorithm.threshold");
  EXPECT_EQ(field("endpoint-attribute-scorer", "algorithm",
                  {{"type", "linear_lower_is_better"}, {"normalization", {{"fixedRange", {{"min", 1}, {"max", 1}}}}}}),
            "algorithm.normalization.fixedRange.min");
}

TEST(Plugins, AHeaderNamesTheProfile) {
  TestFleet fleet(2);
  fleet.fleet.update(0, [](EndpointState& s) { s.waiting = 9, s.kv_usage = 0.1; });
  fleet.fleet.update(1, [](EndpointState& s) { s.waiting = 1, s.kv_usage = 0.9; });
  auto made = Pipeline::make({.plugins = {{"", "queue-scorer"}, {"", "kv-cache-utilization-scorer"}},
                              .by_header = ProfilesByHeader{.header = "EPP-Profile",
                                                            .unnamed = "queue",
                                                            .profiles = {{"queue", {{"queue-scorer"}}},
                                                                         {"kv", {{"kv-cache-utilization-scorer"}}}}}});
  ASSERT_TRUE(made);
  EXPECT_THAT(made->headers(), ElementsAre("epp-profile"));
  RouteRequest request = prompt("p");
  EXPECT_EQ(fleet.rank(*made, request).front(), 1U) << "none is named";
  request.headers = {{"epp-profile", " kv "}};
  EXPECT_EQ(fleet.rank(*made, request).front(), 0U);
  request.headers = {{"epp-profile", "queue"}};
  EXPECT_EQ(fleet.rank(*made, request).front(), 1U);
  request.headers = {{"epp-profile", "another"}};
  EXPECT_TRUE(fleet.rank(*made, request).empty());
}

TEST(Plugins, APeerIsASourceOfBlocks) {
  TestFleet fleet(3);
  PluginConfig config{"", "p2p-source-producer", {{"minCachedTokenDelta", 64}}};
  Pipeline policy = pipeline({config, {"", "queue-scorer"}}, {{"queue-scorer"}});
  const RouteRequest request = [] {
    RouteRequest r = prompt(std::string(4 * 256, 'x'));
    r.headers = {{"x-request-id", "a"}};
    return r;
  }();
  const auto source = [&](const RouteRequest& requested, EndpointId computing) -> EndpointId {
    const auto view = fleet.fleet.view();
    Cycle cycle{*view, requested, fleet.inflight, fleet.pace, fleet.now_us, Draws(++fleet.seed)};
    policy.choose(cycle, Role::both, {}, fleet.decision);
    Candidates all;
    for (const Member& member : view->members) all.push_back(&member);
    const Member* found = policy.kv_source()->source(cycle, all, computing);
    return found ? found->id : kNoEndpoint;
  };
  const auto hold = [&](const RouteRequest& sent, EndpointId id) {
    const auto view = fleet.fleet.view();
    Cycle cycle{*view, sent, fleet.inflight, fleet.pace, fleet.now_us, Draws(1)};
    policy.choose(cycle, Role::both, {}, fleet.decision);
    policy.sent(cycle, id);
  };
  EXPECT_EQ(source(request, 0), kNoEndpoint) << "nobody holds anything";
  hold(request, 1);
  EXPECT_EQ(source(request, 0), 1U);
  EXPECT_EQ(source(request, 1), kNoEndpoint) << "it is who computes";
  RouteRequest shorter = request;
  shorter.tokens.resize(64);
  hold(shorter, 0);
  EXPECT_EQ(source(shorter, 0), kNoEndpoint) << "it holds as much";
  EXPECT_EQ(source(request, 0), 1U);
  hold(request, 2);
  std::set<EndpointId> drawn;
  RouteRequest other = request;
  for (int i = 0; i < 100; ++i) {
    other.headers = {{"x-request-id", std::to_string(i)}};
    drawn.insert(source(other, 0));
    EXPECT_EQ(source(other, 0), source(other, 0)) << "the id decides";
  }
  EXPECT_THAT(drawn, ElementsAre(1, 2));
  fleet.fleet.update(1, [](EndpointState& s) { s.waiting = 1'000'000; });
  EXPECT_EQ(source(request, 0), 2U);
}

TEST(Plugins, AgentsSayTheirSessionsInHeadersOfTheirOwn) {
  Pipeline policy = pipeline({{"", "agent-identity", {{"additionalSessionHeaders", {"X-Mine"}}}},
                              {"",
                               "session-affinity-filter",
                               {{"strategy", "session_id"},
                                {"sessionIdConfig", {{"sources", {{{"attribute", "agent-identity"}}}}}}}}},
                             {{"session-affinity-filter"}});
  ASSERT_TRUE(policy.agents());
  const auto session = [&](HeaderFields headers) {
    const RouteRequest request{.headers = std::move(headers)};
    return std::string(session_of(policy.agents()->sources, request));
  };
  EXPECT_EQ(session({{"session_id", "old"}}), "old");
  EXPECT_EQ(session({{"session_id", "old"}, {"session-id", "new"}}), "new");
  EXPECT_EQ(session({{"x-claude-code-session-id", "c"}, {"session-id", "new"}}), "c");
  EXPECT_EQ(session({{"x-claude-code-session-id", "c"}, {"x-mine", "m"}}), "m");
  EXPECT_EQ(session({{"x-session-id", "other"}}), "");
  TestFleet fleet(8);
  RouteRequest request = prompt("p");
  request.headers = {{"session-id", "mine"}};
  const EndpointId home = fleet.send(policy, request).endpoint;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fleet.send(policy, request).endpoint, home);
}

TEST(Plugins, AHeaderAsksForALabel) {
  TestFleet fleet(2);
  Endpoint gold = *fleet.fleet.view()->members[1].endpoint;
  gold.labels["tier"] = "gold";
  fleet.fleet.describe(1, gold);
  Pipeline policy = pipeline({needed("header-label-affinity-scorer")}, {{"header-label-affinity-scorer"}});
  EXPECT_THAT(policy.headers(), ElementsAre("x-tier"));
  RouteRequest request = prompt("p");
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(0, 0));
  request.headers = {{"x-tier", "gold"}};
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(0, 1));
}

TEST(Plugins, ASessionStaysWhereItIs) {
  TestFleet fleet(3);
  for (const char* type : {"session-affinity-scorer", "session-affinity-filter"}) {
    Pipeline policy =
        pipeline({needed("session-id-producer"),
                  {"",
                   type,
                   {{"strategy", "session_id"},
                    {"sessionIdConfig",
                     {{"sources", {{{"attribute", "SessionIDDataKey"}}, {{"header", "X-Session"}}}}}}}}},
                 {{type}});
    for (const auto& [name, value] :
         {std::pair("cookie", "a=b; sid=7"), {"x-session", " 7b "}, {"x-session", "9"}}) {
      RouteRequest request = prompt("p");
      request.headers = {{name, value}};
      const EndpointId home = fleet.send(policy, request).endpoint;
      for (int i = 0; i < 5; ++i) EXPECT_EQ(fleet.send(policy, request).endpoint, home) << value;
      const EndpointId other = fleet.send(policy, request, {home}).endpoint;
      EXPECT_NE(other, home);
      EXPECT_EQ(fleet.send(policy, request).endpoint, other) << "it has moved";
    }
  }
}

TEST(Plugins, ASessionIsWhereTheAnswersHeaderHasSaid) {
  TestFleet fleet(3);
  for (const char* type : {"session-affinity-scorer", "session-affinity-filter"}) {
    Pipeline policy =
        pipeline({{"", type, {{"encodedEndpointHeaderConfig", {{"header", "X-Token "}}}}}}, {{type}});
    EXPECT_THAT(policy.headers(), ElementsAre("x-token"));
    const auto view = fleet.fleet.view();
    for (const Member& member : view->members) {
      RouteRequest request = prompt("p");
      request.headers = policy.answer_headers(member);
      EXPECT_THAT(request.headers, ElementsAre(testing::Pair("x-token", testing::Not(testing::IsEmpty()))));
      for (int i = 0; i < 5; ++i) EXPECT_EQ(fleet.send(policy, request).endpoint, member.id);
      EXPECT_EQ(fleet.rank(policy, request, {member.id}).size(), 2U) << "anyone, without its own";
    }
    RouteRequest request = prompt("p");
    request.headers = {{"x-token", "no base64!"}};
    EXPECT_EQ(fleet.rank(policy, request).size(), 3U);
  }
}

TEST(Plugins, ImagesThatWereSentThereCount) {
  TestFleet fleet(3);
  Pipeline policy = pipeline({{"", "mm-embeddings-cache-scorer"}}, {{"mm-embeddings-cache-scorer"}});
  RouteRequest request = prompt("p");
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(0, 0, 0));
  request.media = {1, 2};
  const EndpointId first = fleet.send(policy, request).endpoint;
  request.media = {2, 3};
  EXPECT_EQ(scores(fleet, policy, request)[first], 0.5);
  policy.forget(first);
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(0, 0, 0));
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
    m.state.waiting = m.id == 0 ? 5 : 0;     // scores of queue-scorer: 0, 1
    m.state.kv_usage = m.id == 0 ? 0 : 0.9;  // scores of kv-cache-utilization-scorer: 1, 0.1
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
  const std::string shared(64 * 4 * 3, 'a');  // three blocks with 64 tokens of 4 bytes
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

TEST(Plugins, LoadsScoreByWhatWaitsAndWhatIsInFlight) {
  TestFleet fleet(3);
  fleet.fleet.update([](Member& m) { return (m.state.waiting = static_cast<int>(m.id) * 64, true); });
  auto queue = pipeline({{"", "load-aware-scorer"}}, {{"load-aware-scorer"}});
  EXPECT_THAT(scores(fleet, queue), ElementsAre(0.5, 0.25, 0));
  fleet.inflight.book(1, 500, 500);
  fleet.inflight.book(2, 3000, 3000);
  auto tokens =
      pipeline({{"", "token-load-scorer", {{"queueThresholdTokens", 1000}}}}, {{"token-load-scorer"}});
  EXPECT_THAT(scores(fleet, tokens), ElementsAre(1, 0.5, 0));
}

TEST(Plugins, TokensToComputeCountOnceForEachRequestInFlight) {
  TestFleet fleet(3);
  auto policy = pipeline({{"", "lmetric-scorer"}}, {{"lmetric-scorer"}});
  const RouteRequest request = prompt(std::string(512, 'a'));
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(1, 1, 1)) << "none has the prompt";
  fleet.inflight.book(0, 500, 500);
  fleet.inflight.book(1, 500, 500);
  fleet.inflight.book(1, 500, 500);
  EXPECT_THAT(scores(fleet, policy, request), ElementsAre(0.5, 0, 1));
  const EndpointId holder = fleet.send(policy, request).endpoint;
  EXPECT_EQ(holder, 2U);
  EXPECT_THAT(scores(fleet, policy, request)[2], 1) << "it computes nothing";
}

TEST(Plugins, AnAdapterGoesWhereItIsLoadedOrFindsRoom) {
  TestFleet fleet(5);
  fleet.fleet.update([](Member& m) {
    const AdapterState states[] = {{{"m"}, {}, 1}, {{"x"}, {}, 2}, {{"x"}, {"m"}, 2}, {{"x"}, {"y"}, 2}};
    if (m.id < 4) m.state.adapters = std::make_shared<const AdapterState>(states[m.id]);
    return true;
  });
  auto policy = pipeline({{"", "lora-affinity-scorer"}}, {{"lora-affinity-scorer"}});
  EXPECT_THAT(scores(fleet, policy), ElementsAre(1, 0.8, 0.6, 0, 0));
}

TEST(Plugins, ColdPromptsGoToWhoHasHadNoneForTheLongestTime) {
  TestFleet fleet(3);
  auto policy = pipeline({{"", "no-hit-lru-scorer"}}, {{"no-hit-lru-scorer"}});
  std::vector<EndpointId> order;
  for (int i = 0; i < 6; ++i)
    order.push_back(fleet.send(policy, prompt(std::string(512, static_cast<char>('a' + i)))).endpoint);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(scores(fleet, policy, prompt(std::string(512, 'z'))), ElementsAre(1, 0.5, 0));
  EXPECT_THAT(scores(fleet, policy, prompt(std::string(512, 'a'))), ElementsAre(0.5, 0.5, 0.5))
      << "somebody holds it";
}

TEST(Plugins, APrefixDrawsRequestsUnlessItsHolderIsFarBehind) {
  TestFleet fleet(3);
  const PluginConfig config{
      "", "prefix-cache-affinity-filter", {{"maxTTFTPenaltyMs", 1000}, {"peakPrefillThroughput", 1000}}};
  auto policy = pipeline({config}, {{config.type}});
  const RouteRequest request = prompt(std::string(4 * 640, 'a'));
  Booking holder = fleet.send(policy, request);
  EXPECT_THAT(fleet.rank(policy, request), ElementsAre(holder.endpoint));
  EXPECT_EQ(fleet.rank(policy, prompt(std::string(4 * 640, 'b'))).size(), 3U) << "nobody holds it";
  fleet.inflight.book(holder.endpoint, 3000, 3000);  // three seconds of prefill
  EXPECT_EQ(fleet.rank(policy, request).size(), 3U);
}

TEST(Plugins, APrefixAlwaysDrawsRequestsWherePenaltiesAre0) {
  TestFleet fleet(3);
  const RouteRequest request = prompt(std::string(4 * 640, 'a'));
  const auto ranked = [&](boost::json::object parameters) {
    const PluginConfig config{"", "prefix-cache-affinity-filter", std::move(parameters)};
    auto policy = pipeline({config}, {{config.type}});
    Booking holder = fleet.send(policy, request);
    Booking long_prompt = fleet.inflight.book(holder.endpoint, 1'000'000, 1'000'000);
    const std::size_t left = fleet.rank(policy, request).size();
    fleet.inflight.free(long_prompt);
    fleet.inflight.free(holder);
    return left;
  };
  EXPECT_EQ(ranked({{"maxTTFTPenaltyMs", 0}}), 1U);
  EXPECT_EQ(ranked({{"maxTTFTPenaltyMs", 0}, {"maxTokensInFlightPenalty", 900'000}}), 3U);
  EXPECT_EQ(ranked({{"maxTTFTPenaltyMs", 0}, {"maxTokensInFlightPenalty", 2'000'000}}), 1U);
}

TEST(Plugins, WeightedRandomDrawsByScore) {
  TestFleet fleet(3);
  // scores: 1, 0.5, 0
  fleet.fleet.update([](Member& m) { return (m.state.kv_usage = 0.5 * m.id, true); });
  auto policy = pipeline({{"", "kv-cache-utilization-scorer"}, {"", "weighted-random-picker"}},
                         {{"kv-cache-utilization-scorer"}, {"weighted-random-picker"}});
  std::map<EndpointId, int> counts;
  for (int i = 0; i < 30'000; ++i) ++counts[fleet.rank(policy, prompt("p"))[0]];
  EXPECT_NEAR(counts[0], 20'000, 400);
  EXPECT_NEAR(counts[1], 10'000, 400);
  EXPECT_EQ(counts[2], 0);
}

}  // namespace
}  // namespace octavo::fleet
