#include "fleet/plan/sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

const Slo kSlo{.limits = {.ttft_ms = 400}, .share = 0.95};

// A step takes 10 ms and a block of prompt tokens 51 ms, so a replica serves about six prompts per second.
SimulationOptions slow_replicas() {
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = 100};
  options.scheduler.enable_prefix_caching = false;
  return options;
}

Result<Sizing> size(const Trace& trace, const Slo& slo, int least = 1, int most = 64) {
  return size_fleet(slow_replicas(), trace, slo, least, most, [](int, std::size_t, std::size_t) {});
}

TEST(Sizing, FindsTheSmallestFleetThatMeetsTheSlo) {
  const Trace trace = conversations(24, 4, 2'000'000);
  const auto sizing = size(trace, kSlo);
  ASSERT_TRUE(sizing) << sizing.error().message;
  ASSERT_GT(sizing->replicas, 1);
  SimulationOptions options = slow_replicas();
  for (int replicas = 1; replicas <= sizing->replicas; ++replicas) {
    options.replicas = replicas;
    const auto result = *simulate(options, trace);
    const auto met = std::ranges::count_if(
        result.answers, [](const auto& a) { return a.completed && a.first_us - a.sent_us <= 400'000; });
    EXPECT_EQ(static_cast<double>(met) >= 0.95 * static_cast<double>(result.answers.size()),
              replicas == sizing->replicas)
        << replicas;
  }
}

TEST(Sizing, TellsEveryTrialInOrder) {
  const auto sizing = *size(conversations(24, 4, 2'000'000), kSlo);
  EXPECT_TRUE(std::ranges::is_sorted(sizing.trials, std::ranges::less_equal{}, &Trial::replicas));
  for (const Trial& trial : sizing.trials) {
    EXPECT_EQ(trial.meets_slo, trial.replicas >= sizing.replicas);
    EXPECT_EQ(trial.figures.at("slo_attainment").as_double(), trial.attained);
    EXPECT_EQ(trial.figures.at("replicas").to_number<int>(), trial.replicas);
  }
  const auto& figures = sizing.answer().figures;
  const auto number = [&](const char* name) { return figures.at(name).to_number<double>(); };
  EXPECT_EQ(sizing.answer().replicas, sizing.replicas);
  EXPECT_NEAR(number("tokens_per_replica_second") * number("replica_hours") * 3600,
              number("total_input_tokens") + number("total_output_tokens"), 1e-6);
}

TEST(Sizing, MoreTrafficNeverNeedsFewerReplicas) {
  int before = 1;
  for (const std::uint32_t users : {2U, 12U, 24U, 48U, 72U}) {
    const int replicas = size(conversations(users, 4, 2'000'000), kSlo)->replicas;
    EXPECT_GE(replicas, before) << users;
    before = replicas;
  }
  EXPECT_GT(before, 4);
}

TEST(Sizing, StrictLimitsNeedMore) {
  const Trace trace = conversations(36, 4, 2'000'000);
  const int loose = size(trace, {.limits = {.ttft_ms = 1500}, .share = 0.8})->replicas;
  EXPECT_GT(size(trace, kSlo)->replicas, loose);
}

TEST(Sizing, BeginsAtTheLeastThatIsAllowed) {
  const auto sizing = *size(conversations(2, 2, 2'000'000), kSlo, 9);
  EXPECT_EQ(sizing.replicas, 9);
  EXPECT_EQ(sizing.trials.size(), 1U);
}

TEST(Sizing, AnSloThatNobodyMeetsIsAnError) {
  const Trace trace = conversations(24, 4, 2'000'000);
  const auto none = size(trace, {.limits = {.ttft_ms = 1}}, 1, 10);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "slo");
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(none.error().message, HasSubstr("up to 10 replicas"));
  EXPECT_THAT(none.error().message, HasSubstr("99 %"));
  EXPECT_FALSE(size(trace, kSlo, 1, 1)) << "one is too few";
}

TEST(Sizing, RefusedRequestsAreNotWithinTheSlo) {
  Trace trace = conversations(4, 4, 2'000'000);
  trace.requests[0].output_tokens = 100'000;  // more tokens than the KV cache has
  EXPECT_FALSE(size(trace, {.limits = {.ttft_ms = 1e6}, .share = 0.99}, 1, 4));
  EXPECT_EQ(size(trace, {.limits = {.ttft_ms = 1e6}, .share = 0.9}, 1, 4)->replicas, 1);
}

}  // namespace
}  // namespace octavo::fleet
