#include "fleet/simulate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace octavo::fleet {
namespace {

using testing::ContainsRegex;

// Two answers and one refused request in two seconds.
SimulationResult sample_result() {
  SimulationResult result{.duration_us = 2'000'000};
  result.answers = {
      {.completed = true, .input_tokens = 1000, .output_tokens = 5, .first_us = 100'000, .last_us = 300'000},
      {.completed = true,
       .input_tokens = 200,
       .output_tokens = 1,
       .sent_us = 100'000,
       .first_us = 400'000,
       .last_us = 400'000},
      {.input_tokens = 99}};
  result.samples = {{}, {.time_us = 2'000'000, .prompt_tokens = 1200, .cached_tokens = 600}};
  for (const std::int64_t gap : {20'000, 40'000, 40'000, 100'000}) result.gaps.add(gap);
  result.replicas = {
      {.lifetime_us = 2'000'000, .busy_us = 1'000'000, .steps = 10, .preemptions = 2, .requests = 2},
      {.lifetime_us = 1'000'000}};
  return result;
}

constexpr double kPercentiles[] = {50, 90, 99.9};

TEST(Report, HasTheFieldsOfABenchmark) {
  const auto out =
      report({.replicas = 2, .policy = "random"}, sample_result(), {.ttft_ms = 299}, kPercentiles);
  const auto number = [&](const char* name) { return out.at(name).to_number<double>(); };
  EXPECT_EQ(out.at("policy"), "random");
  EXPECT_EQ(number("num_prompts"), 3);
  EXPECT_EQ(number("completed"), 2);
  EXPECT_EQ(number("failed"), 1);
  EXPECT_EQ(number("duration"), 2);
  EXPECT_EQ(number("mean_ttft_ms"), 200);
  EXPECT_NEAR(number("p99.9_itl_ms"), 99.82, 1e-9);
  EXPECT_EQ(number("request_goodput"), 0.5);
  EXPECT_EQ(number("cached_input_tokens"), 600);
  EXPECT_EQ(number("prefix_cache_hit_rate"), 0.5);
  EXPECT_EQ(number("mean_utilization"), 0.25);
  EXPECT_EQ(number("max_utilization"), 0.5);
  EXPECT_EQ(number("steps"), 10);
  EXPECT_EQ(number("preemptions"), 2);
  EXPECT_NEAR(number("replica_hours"), 3.0 / 3600, 1e-12);
}

TEST(Report, OfNothingCompletedHasNoTimes) {
  const SimulationResult result{.answers = {{}}, .samples = {{}}, .replicas = {{}}};
  const auto out = report({.replicas = 1}, result, {.ttft_ms = 1}, kPercentiles);
  EXPECT_EQ(out.at("failed").to_number<int>(), 1);
  EXPECT_EQ(out.at("mean_ttft_ms").to_number<double>(), 0);
  EXPECT_EQ(out.at("request_throughput").to_number<double>(), 0);
}

TEST(Report, TablesStandSideBySide) {
  const auto one = report({.policy = "random"}, sample_result(), {}, kPercentiles);
  const auto two = report({.policy = "round_robin"}, sample_result(), {}, kPercentiles);
  const std::string text = report_table(std::vector{one, two});
  EXPECT_THAT(text, ContainsRegex("policy +random +round_robin\n"));
  EXPECT_THAT(text, ContainsRegex("p90_ttft_ms +280.000 +280.000\n"));
}

}  // namespace
}  // namespace octavo::fleet
