// Tests that the step loop allocates no memory after a sequence is added, by counting calls of operator
// new.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/testing/allocations.h"
#include "schedule/scheduler.h"

namespace octavo {
namespace {

class StepLoop : public ::testing::TestWithParam<Policy> {};

// The run is long enough for prefix hits, full blocks, moving windows, preemptions and deferred blocks.
TEST_P(StepLoop, AllocatesNothing) {
  SchedulerOptions o;
  o.block_size = 4;
  o.num_blocks = 120;
  o.groups = {CacheGroup{}, CacheGroup{10}};
  o.max_num_seqs = 16;
  o.max_num_batched_tokens = 64;
  o.max_model_len = 200;
  o.saved_states = 5;
  o.mamba_block_size = 8;
  o.policy = GetParam();
  const auto scheduler = *Scheduler::create(o);
  StepPlan plans[2];
  for (StepPlan& plan : plans) {
    plan.sequences.reserve(static_cast<std::size_t>(o.max_num_seqs));
    plan.preempted.reserve(static_cast<std::size_t>(o.max_num_seqs));
  }
  for (int i = 0; i < 40; ++i) {
    std::vector<TokenId> prompt(20, 1);
    for (std::size_t p = 10; p < prompt.size(); ++p) prompt[p] = i;
    ASSERT_TRUE(scheduler->add({.prompt = prompt, .max_total_tokens = 150, .priority = i % 3}));
  }

  const long before = allocations();
  int steps = 0;
  scheduler->plan(plans[0]);
  for (StepPlan *flying = &plans[0], *next = &plans[1]; !flying->empty(); std::swap(flying, next), ++steps) {
    scheduler->plan(*next);
    scheduler->collect(flying->step);
    for (const PlannedSequence& p : flying->sequences) {
      if (!p.samples || !scheduler->commit(p.sequence, steps % 5)) continue;
      const Sequence* s = scheduler->find(p.sequence);
      if (s->length() == s->spec.max_total_tokens) scheduler->finish(p.sequence);
    }
    if (next->empty()) scheduler->plan(*next);
  }
  EXPECT_EQ(allocations(), before);
  EXPECT_GT(steps, 300);
  EXPECT_EQ(scheduler->stats().running + scheduler->stats().waiting, 0);
  EXPECT_GT(scheduler->stats().preemptions, 0);
  EXPECT_GT(scheduler->stats().prefix_hits, 0);
}

std::string policy_name(const testing::TestParamInfo<Policy>& policy) {
  constexpr std::array kNames{"fcfs", "priority", "longest_prefix"};
  return kNames[static_cast<std::size_t>(policy.param)];
}
INSTANTIATE_TEST_SUITE_P(Policies, StepLoop,
                         ::testing::Values(Policy::fcfs, Policy::priority, Policy::longest_prefix),
                         policy_name);

}  // namespace
}  // namespace octavo
