#include "fleet/plan/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/simulate/test_traffic.h"
#include "fleet/simulate/traffic_shape.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000;
const Slo kSlo{.limits = {.ttft_ms = 4000}, .share = 0.95};

// A short day, whose busiest minute has seven times the requests of its quietest minute.
Trace day() {
  return *generate_traffic({.seconds = 1800,
                            .session_rate = 4,
                            .daily_swing = 0.75,
                            .day_seconds = 1800,
                            .input_tokens = 1024,
                            .output_tokens = 2,
                            .spread = 0.2},
                           512, 7);
}

// A replica serves two prompts per second.
SimulationOptions slow_replicas() {
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = 450};
  options.scheduler.enable_prefix_caching = false;
  return options;
}

ComparisonRules rules() {
  return {.autoscaler = {.scaling = {.replicas_min = 1,
                                     .replicas_max = 12,
                                     .window_us = 30 * kSecond,
                                     .scale_down_delay_us = 60 * kSecond,
                                     .startup_us = 10 * kSecond},
                         .ttft_ms = 4000}};
}

Result<std::vector<Contender>> compare(const ComparisonRules& rules) {
  return compare_scalers(slow_replicas(), day(), kSlo, rules, CapacityTable({{1, 1900}}),
                         *find_predictor("trend"), [](const std::string&, std::size_t, std::size_t) {});
}

TEST(Comparison, AFleetThatFollowsCostsLessThanAFixedOneAndMoreThanTheOracles) {
  const auto contenders = compare(rules());
  ASSERT_TRUE(contenders) << contenders.error().message;
  ASSERT_EQ(contenders->size(), 4);
  const Contender &oracle = (*contenders)[0], &fixed = (*contenders)[1], &autoscaler = (*contenders)[2];
  EXPECT_EQ(oracle.name, "oracle");
  EXPECT_TRUE(oracle.trial.meets_slo && fixed.trial.meets_slo && autoscaler.trial.meets_slo);
  EXPECT_LT(oracle.trial.least, oracle.trial.most);
  EXPECT_EQ(fixed.trial.least, fixed.trial.most);
  EXPECT_LT(oracle.hours(), autoscaler.hours());
  EXPECT_LT(autoscaler.hours(), fixed.hours());
  EXPECT_THAT((*contenders)[3].name, HasSubstr("HPA"));

  const std::string text = comparison_text(*contenders);
  EXPECT_THAT(text, HasSubstr("octavo plan live, trend"));
  EXPECT_EQ(comparison_json(*contenders), comparison_json(*compare(rules()))) << "the same once more";
}

TEST(Comparison, AnSloThatNobodyMeetsIsAnError) {
  ComparisonRules few = rules();
  few.autoscaler.scaling.replicas_max = 1;
  const auto contenders = compare(few);
  ASSERT_FALSE(contenders);
  EXPECT_EQ(contenders.error().field, "slo");
}

}  // namespace
}  // namespace octavo::fleet
