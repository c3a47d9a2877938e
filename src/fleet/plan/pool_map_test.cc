#include "fleet/plan/pool_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

// Prompt tokens make steps slow, which delays the sequences that decode in the same step.
SimulationOptions slow_prompts() {
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = 100};
  options.prefill = {.scheduler = options.scheduler,
                     .timing = options.timing,
                     .policy = "least_loaded",
                     .kv_bytes_per_token = 1000,
                     .link_bytes_per_second = 1e9};
  return options;
}

PoolMapRules small(std::vector<int> prompts, std::vector<int> answers) {
  return {
      .replicas = 3, .prompt_tokens = std::move(prompts), .answer_tokens = std::move(answers), .seconds = 30};
}

Slo slo(double tpot_ms) { return {.limits = {.ttft_ms = 5000, .tpot_ms = tpot_ms}, .share = 0.9}; }

TEST(PoolMap, AStrictTimeOfTokensIsWhereItPays) {
  const PoolMapRules rules = small({1000}, {100});
  const auto progress = [](std::size_t, std::size_t) {};
  const auto strict = map_pools(slow_prompts(), slo(12), rules, progress).value();
  ASSERT_EQ(strict.size(), 1U);
  EXPECT_GT(strict[0].apart, strict[0].together) << "a prompt between two tokens costs 100 ms";
  EXPECT_GT(strict[0].prefill_replicas, 0);
  const auto loose = map_pools(slow_prompts(), slo(1000), rules, progress).value();
  EXPECT_LT(loose[0].gain(), strict[0].together > 0 ? strict[0].gain() : 100);
  EXPECT_LT(loose[0].apart, loose[0].together) << "with all the time in the world, both do everything best";
}

TEST(PoolMap, TellsCellsInEveryForm) {
  const PoolMapRules rules = small({100, 1000}, {10});
  const std::vector<PoolCell> cells{{100, 10, 5, 10, 1}, {1000, 10, 0, 0, 0}};
  EXPECT_THAT(pool_map_text(cells), HasSubstr("    2.00\n"));
  const auto json = pool_map_json(cells, rules);
  EXPECT_EQ(json.at("cells").as_array()[0].at("gain").as_double(), 2);
  EXPECT_THAT(pool_map_svg("title", cells, rules), HasSubstr(">x 2.00<"));
  EXPECT_THAT(pool_map_svg("title", cells, rules), HasSubstr(">no rate meets the SLO<"));
}

}  // namespace
}  // namespace octavo::fleet
