#include "fleet/decide/burst.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/decide/pipeline.h"
#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

// Places prompts, given as keys of their blocks, on endpoints "e0", "e1", and so on. Most cases come from
// llm-d's tests.
std::vector<EndpointId> placed(std::vector<std::vector<PrefixKey>> prompts, std::size_t endpoints,
                               BurstOptions options = {}) {
  std::vector<BurstEndpoint> all;
  for (std::size_t i = 0; i < endpoints; ++i)
    all.push_back({static_cast<EndpointId>(i), "e" + std::to_string(i), 0});
  return place_burst(prompts, all, options);
}

constexpr EndpointId kAnywhere = kNoEndpoint;
const std::vector<PrefixKey> kA{1, 2}, kB{3, 4}, kC{5}, kNone;

TEST(Burst, EqualPromptsStayTogetherAndOthersAreSpread) {
  EXPECT_THAT(placed({kA, kB, kA, kB, kA}, 3), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(placed({kA, kB, kC}, 3), ElementsAre(kAnywhere, kAnywhere, kAnywhere)) << "nothing in common";
  EXPECT_THAT(placed({kNone, kNone}, 3), ElementsAre(kAnywhere, kAnywhere)) << "no prompts";
  EXPECT_THAT(placed({kA, kA}, 0), ElementsAre(kAnywhere, kAnywhere)) << "no endpoints";
}

TEST(Burst, LongPromptsAreFirst) { EXPECT_THAT(placed({kC, kC, kA, kA}, 2), ElementsAre(1, 1, 0, 0)); }

TEST(Burst, WhoIsFullGetsNoMore) {
  EXPECT_THAT(placed({kA, kA, kA, kA, kA}, 3, {.per_endpoint_max = 2}), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(placed({kA, kA, kA, kA, kA}, 2, {.per_endpoint_max = 1}), ElementsAre(0, 1, 0, 1, 0))
      << "all are full";
}

TEST(Burst, ACommonBeginningDrawsPromptsTogetherUpToAFairShare) {
  const std::vector<std::vector<PrefixKey>> prompts{{1, 2, 3}, {1, 2, 4}, {1, 2, 5}, {1, 2, 6}, {9, 9, 9}};
  EXPECT_THAT(placed(prompts, 2, {.shared_blocks_min = 2}), ElementsAre(0, 0, 1, 1, kAnywhere));
  EXPECT_THAT(placed(prompts, 2, {.shared_blocks_min = 3}),
              ElementsAre(kAnywhere, kAnywhere, kAnywhere, kAnywhere, kAnywhere));
  // The first prompt is a prefix of the second prompt.
  EXPECT_THAT(placed({{1}, {1, 2, 3}, {1, 2, 3}, {7, 8}, {7, 8}}, 2, {.shared_blocks_min = 1}),
              ElementsAre(0, 0, 0, 1, 1));
}

TEST(Burst, LoadIsCountedInRequestsOrInNewBlocks) {
  const std::vector<std::vector<PrefixKey>> prompts{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, kA, kA, kB, kB};
  EXPECT_THAT(placed(prompts, 2), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(placed(prompts, 2, {.by_tokens = true}), ElementsAre(0, 0, 1, 1, 1, 1));
}

TEST(Burst, RunningRequestsBreakTies) {
  const BurstEndpoint endpoints[] = {{0, "a", 3}, {1, "b", 2}, {2, "c", 2}};
  const std::vector<std::vector<PrefixKey>> prompts{kA, kA};
  EXPECT_THAT(place_burst(prompts, endpoints, {}), ElementsAre(1, 1));
}

TEST(Burst, WhereARequestWasPlacedScores) {
  auto made = Pipeline::make(
      {{{"", "burst-prefix-cache-producer", {{"blockSizeTokens", 4}}},
        {"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", "burst-prefix-cache-producer"}}}},
       {{"prefix-cache-scorer"}}});
  ASSERT_TRUE(made);
  ASSERT_NE(made->burst(), nullptr);
  TestFleet fleet(3);
  const RouteRequest request = prompt("a prompt of more than one block of tokens");
  EXPECT_EQ(made->burst()->keys(request).size(), (request.tokens.size() + 3) / 4);
  const auto view = fleet.fleet.view();
  Cycle cycle{*view, request, fleet.inflight, fleet.pace, 0, Draws(1)};
  cycle.burst_home = 2;
  made->choose(cycle, Role::both, {}, fleet.decision);
  EXPECT_EQ(fleet.decision.chosen(), 2);
  EXPECT_EQ(fleet.decision.ranking.front().total, 1);
  EXPECT_EQ(fleet.decision.ranking.back().total, 0);
  EXPECT_EQ(cycle.cached_tokens(2), 0) << "it is to go there, nothing is there yet";
}

}  // namespace
}  // namespace octavo::fleet
