#include "fleet/flow/fairness.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <vector>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(ProgramAware, WhoHasHadTheLeastGoesFirst) {
  const auto policy = make_fairness("program-aware-fairness");
  const auto band = policy->make();
  const std::vector<FlowHead> heads{{"a", {0, 1}, 0}, {"b", {0, 2}, 0}, {"c", {0, 3}, 0}};
  policy->ended("a", 100, 0, 0);
  policy->ended("b", 10, 60, 0);  // service: 10 + 2 * 60 = 130, because output tokens count twice
  policy->ended("c", 120, 0, 0);
  EXPECT_EQ(band->pick(heads, 0), 0U);
  policy->ended("a", 40, 0, 0);
  EXPECT_EQ(policy->make()->pick(heads, 0), 2U) << "bands share what is known";
  // After two half-lives, 140 counts as 35, which is less than 36 new tokens.
  policy->ended("c", 6, 0, 120 * kSecond);
  policy->ended("b", 4, 0, 120 * kSecond);
  EXPECT_EQ(band->pick(heads, 120 * kSecond), 0U);
}

TEST(ProgramAware, WaitingCountsToo) {
  boost::json::object weights{{"lasWeightService", 0}, {"lasWeightHeadWait", 1}};
  Parameters parameters(weights, "");
  const auto band = find_fairness("program-aware-fairness")->make(parameters)->make();
  EXPECT_TRUE(parameters.done());
  const std::vector<FlowHead> heads{
      {"a", {0, 3}, 3 * kSecond}, {"b", {0, 1}, kSecond}, {"c", {0, 2}, 2 * kSecond}};
  EXPECT_EQ(band->pick(heads, 5 * kSecond), 1U);
}

TEST(ProgramAware, WhatIsLongOverIsForgotten) {
  boost::json::object settings{
      {"lasHalfLifeSeconds", 0}, {"evictionTtlSeconds", 10}, {"evictionSweepSeconds", 1}};
  Parameters parameters(settings, "");
  const auto policy = find_fairness("program-aware-fairness")->make(parameters);
  const auto band = policy->make();
  const std::vector<FlowHead> heads{{"a", {0, 1}, 0}, {"b", {0, 2}, 0}};
  policy->ended("a", 100, 0, 0);
  policy->ended("b", 50, 0, 5 * kSecond);
  EXPECT_EQ(band->pick(heads, 5 * kSecond), 1U);
  policy->ended("c", 1, 0, 12 * kSecond);
  EXPECT_EQ(band->pick(heads, 12 * kSecond), 0U);
}

std::shared_ptr<FairnessPolicy> turn_priority(boost::json::object values) {
  values["strategy"] = "turn-priority";
  Parameters parameters(values, "p");
  auto policy = make_program_aware(parameters);
  EXPECT_TRUE(parameters.done());
  return policy;
}

TEST(TurnPriority, TheSessionWithTheMostTurnsGoesFirst) {
  const auto policy = turn_priority({{"turnPriorityTimeWeight", 0.5}, {"turnPriorityInactivitySeconds", 120}});
  const auto fairness = policy->make();
  const std::vector<FlowHead> only{{"deep", {0, 0}, 0}};
  for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(fairness->pick(only, 0), 0U);
  const auto first = [&](std::int64_t new_since_s, std::int64_t now_s) {
    const std::vector<FlowHead> both{{"deep", {0, 0}, now_s * kSecond}, {"new", {0, 1}, new_since_s * kSecond}};
    return both[fairness->pick(both, now_s * kSecond)].flow;
  };
  EXPECT_EQ(first(0, 0), "deep");
  EXPECT_EQ(first(0, 20), "new") << "20 s count as 10 turns";
  EXPECT_EQ(first(20, 20), "deep");
  policy->ended("new", 1, 1, 200 * kSecond);
  EXPECT_EQ(first(200, 200), "new") << "the other one has been idle and begins anew";
}

}  // namespace
}  // namespace octavo::fleet
