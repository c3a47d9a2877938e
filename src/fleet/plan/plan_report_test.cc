#include "fleet/plan/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Plan small_plan() {
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = 100};
  const Slo slo{.limits = {.ttft_ms = 400}, .share = 0.95};
  return {slo, *size_fleet(options, conversations(24, 4, 2'000'000), slo, 1, 64,
                           [](int, std::size_t, std::size_t) {})};
}

TEST(PlanReport, HasARowForEachTrialAndTheAnswer) {
  const Plan plan = small_plan();
  const std::string text = plan_text(plan);
  for (const Trial& trial : plan.sizing.trials)
    EXPECT_THAT(text, ContainsRegex(fmt::format("\n +{} +{:.2f} % +{} ", trial.replicas, trial.attained * 100,
                                                trial.meets_slo ? "yes" : "no")));
  EXPECT_THAT(text, HasSubstr(fmt::format("\n{} replicas meet the SLO for 95 %", plan.sizing.replicas)));
  EXPECT_THAT(text, Not(HasSubstr("predicted")));
}

TEST(PlanReport, JsonHasTheTrialsAndTheSlo) {
  const Plan plan = small_plan();
  const boost::json::value out(plan_json(plan));
  EXPECT_EQ(out.at("replicas"), plan.sizing.replicas);
  EXPECT_EQ(out.at("policy"), "least_loaded");
  EXPECT_EQ(out.at("trials").as_array().size(), plan.sizing.trials.size());
  EXPECT_EQ(out.at_pointer("/slo/ttft_ms"), 400.0);
  EXPECT_TRUE(out.at_pointer("/slo/tpot_ms").is_null());
  EXPECT_EQ(out.at_pointer("/trials/0/meets_slo"), false);
  EXPECT_FALSE(out.as_object().contains("scaling"));
}

TEST(PlanReport, TellsTheWindowsInWhichTheFleetChanges) {
  Plan plan = small_plan();
  plan.scaling = ScalingPlan{.predictor = "constant",
                             .rules = {.window_us = 30'000'000},
                             .capacity = {{1, 111}, {4, 444}},
                             .windows = {{.load = 400, .needed = 4, .replicas = 4},
                                         {.load = 210, .predicted = 400, .needed = 4, .replicas = 4},
                                         {.load = 77, .predicted = 210, .needed = 2, .replicas = 2}},
                             .trial = plan.sizing.answer()};
  const std::string text = plan_text(plan);
  EXPECT_THAT(text, ContainsRegex("\n +2-4 "));
  EXPECT_THAT(text, HasSubstr("1: 111  4: 444"));
  EXPECT_THAT(text, ContainsRegex("\n +0 +400 +- +4\n +60 +77 +210 +2\n"));
  EXPECT_THAT(text, HasSubstr("needs 100.0 % of the replica hours"));
  const boost::json::value out(plan_json(plan));
  EXPECT_EQ(out.at_pointer("/scaling/windows").as_array().size(), 3U);
  EXPECT_EQ(out.at_pointer("/scaling/windows/2/start_s"), 60.0);
  EXPECT_EQ(out.at_pointer("/scaling/windows/2/replicas"), 2);
  EXPECT_EQ(out.at_pointer("/scaling/capacity/1/tokens_per_second"), 444.0);
}

}  // namespace
}  // namespace octavo::fleet
