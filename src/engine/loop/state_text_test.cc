#include "engine/loop/state_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(PlanText, HasTheTokensOfEachSequenceAndTheLosers) {
  const std::vector<TokenId> drafts{7, 8};
  StepPlan plan;
  plan.step = 12;
  plan.tokens = 35;
  plan.preempted.resize(1);
  plan.sequences.resize(2);
  plan.sequences[0].count = 32;
  plan.sequences[1].first = 40;
  plan.sequences[1].count = 1;
  plan.sequences[1].samples = true;
  plan.sequences[1].drafts = drafts;
  EXPECT_EQ(plan_text(plan),
            "step 12: 35 tokens of 2 sequences: [0, 32), [40, 43) with 2 drafts samples; preempted 1");
}

}  // namespace
}  // namespace octavo
