// Tests how holds share blocks of sliding-window groups with each other and with sequences.
#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

class WindowHolds : public ::testing::Test {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions o = small_scheduler();
    o.num_blocks = 60;
    o.groups = {{0}, {9}};
    o.max_num_batched_tokens = 16;
    o.max_steps_in_flight = 1;
    return o;
  }

  void SetUp() override {
    engine.add(prompt, 1);
    engine.run_until_idle();
    holds.push_back(engine.scheduler->hold(prompt, {}, 0));
    ASSERT_NE(holds[0], nullptr);
    for (int i = 0; i < 20; ++i) holds.push_back(engine.scheduler->share(*holds[0]));
    engine.scheduler->check();
  }
  void TearDown() override {
    for (PrefixHold* hold : holds) {
      engine.scheduler->let_go(hold);
      engine.scheduler->check();
    }
    EXPECT_EQ(engine.scheduler->stats().blocks_used, 0);
    EXPECT_EQ(engine.scheduler->lent(), 0);
  }

  ScheduledEngine engine{options()};
  const std::vector<TokenId> prompt = count_from(0, 40);
  std::vector<PrefixHold*> holds;
};

TEST_F(WindowHolds, OfTheSameBlocksLeaveTheFreeBlocksToRequests) {
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 9 + 2);
  EXPECT_EQ(engine.scheduler->lent(), 0);
  const SequenceId other = engine.add(count_from(1000, 120), 2);  // needs at most 38 of the 49 free blocks
  EXPECT_EQ(engine.run()[other], 16);
  while (!engine.run().empty()) continue;
  EXPECT_FALSE(engine.scheduler->contains(other));
}

TEST_F(WindowHolds, LendTheirBlocksToEachSequence) {
  engine.add(prompt, 8);
  engine.plan();
  EXPECT_EQ(engine.step.sequences[0].cached_tokens, 36);
  EXPECT_EQ(engine.scheduler->lent(), 2);
  engine.complete(engine.step);
  while (!engine.run().empty()) continue;
  EXPECT_EQ(engine.scheduler->lent(), 0);
}

}  // namespace
}  // namespace octavo
