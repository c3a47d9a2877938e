#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Scheduler, PreemptsTheYoungestAndGivesItItsPlaceBack) {
  for (const Policy policy : {Policy::fcfs, Policy::longest_prefix}) {
    SchedulerOptions o = small_scheduler();
    o.policy = policy;
    o.num_blocks = 10;
    ScheduledEngine engine(o);
    const SequenceId old = engine.add(count_from(0, 16), 20);
    const SequenceId young = engine.add(count_from(100, 16), 20);
    const SequenceId last = engine.add(count_from(200, 16), 20);
    engine.run();
    EXPECT_EQ(engine.scheduler->stats().running, 2);
    engine.run();
    engine.add(count_from(300, 16), 20);  // arrives after the queue was last sorted
    while (engine.scheduler->stats().preemptions == 0) engine.run();
    EXPECT_EQ(engine.scheduler->find(young)->counts.preemptions, 1);
    EXPECT_EQ(engine.scheduler->find(young)->state, Sequence::State::waiting);
    EXPECT_EQ(engine.scheduler->find(old)->state, Sequence::State::running);
    while (engine.scheduler->find(young)->state == Sequence::State::waiting) {
      EXPECT_EQ(engine.scheduler->find(last)->state, Sequence::State::waiting) << "it is younger";
      engine.run();
    }
    engine.run_until_idle();
    EXPECT_EQ(engine.scheduler->stats().prefix_queries, 4 * 16) << "each is looked up once";
  }
}

// The blocks of a preempted sequence in flight become free one step later. Until then, no second sequence
// is preempted.
TEST(Scheduler, CountsOnBlocksThatAreOnTheirWay) {
  SchedulerOptions o = small_scheduler();
  o.num_blocks = 9;
  ScheduledEngine engine(o);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(engine.add(count_from(100 * i, 8), 8));  // each has two blocks
  StepPlan first, second;
  engine.scheduler->plan(first);
  ASSERT_EQ(first.sequences.size(), 4u);
  engine.scheduler->plan(second);  // all sequences need a third block, and only one is free
  EXPECT_THAT(second.preempted, ElementsAre(ids[3]));
  ASSERT_EQ(second.sequences.size(), 1u);
  EXPECT_EQ(second.sequences[0].sequence, ids[0]);
  engine.complete(first);
  engine.scheduler->plan(first);
  EXPECT_THAT(first.preempted, IsEmpty());
  EXPECT_EQ(first.sequences.size(), 3u);
  engine.complete(second);
  engine.complete(first);
  engine.run_until_idle();
}

TEST(Scheduler, PriorityDecidesWhoGoesFirstAndWhoGivesWay) {
  SchedulerOptions o = small_scheduler();
  o.policy = Policy::priority;
  o.num_blocks = 10;
  ScheduledEngine engine(o);
  const SequenceId low = engine.add(count_from(0, 16), 20, 5);
  const SequenceId middle = engine.add(count_from(200, 16), 20, 3);
  const SequenceId high = engine.add(count_from(100, 16), 20, -1);
  engine.run();
  EXPECT_EQ(engine.scheduler->find(low)->state, Sequence::State::waiting);
  while (engine.scheduler->stats().preemptions == 0) engine.run();
  EXPECT_EQ(engine.scheduler->find(middle)->counts.preemptions, 1);
  EXPECT_EQ(engine.scheduler->find(high)->counts.preemptions, 0);
  engine.run_until_idle();
}

TEST(Scheduler, AdmissionLeavesTheWatermarkFree) {
  SchedulerOptions o = small_scheduler();
  o.num_blocks = 20;
  o.watermark = 0.5;
  ScheduledEngine engine(o);
  engine.add(count_from(0, 40), 2);
  engine.add(count_from(100, 40), 2);
  EXPECT_EQ(engine.run().size(), 1u);
  engine.run_until_idle();
}

// 64 clients use a pool with 1.2 times the blocks of one client. All clients finish within the limit on
// preemptions.
TEST(Scheduler, ServesManyClientsOnAPoolForOne) {
  for (const Policy policy : {Policy::fcfs, Policy::priority, Policy::longest_prefix}) {
    SchedulerOptions o = small_scheduler();
    o.policy = policy;
    o.max_num_batched_tokens = 128;
    o.max_num_seqs = 64;
    o.num_blocks = 60;  // a sequence of 200 tokens needs 50 blocks
    ScheduledEngine engine(o);
    std::vector<SequenceId> clients;
    for (int i = 0; i < 64; ++i) clients.push_back(engine.add(count_from(i * 1000, 20), 180, i % 3));
    int most = 0;
    for (int steps = 0; !engine.run().empty(); ++steps) {
      ASSERT_LT(steps, 64 * 200 * (1 + o.max_preemptions));
      for (const SequenceId id : clients)
        if (const Sequence* s = engine.scheduler->find(id)) most = std::max(most, s->counts.preemptions);
    }
    for (const SequenceId id : clients) EXPECT_FALSE(engine.scheduler->contains(id));
    EXPECT_LE(most, o.max_preemptions);
    EXPECT_GT(engine.scheduler->stats().preemptions, 0);
    EXPECT_EQ(engine.scheduler->stats().blocks_used, 0);
  }
}

}  // namespace
}  // namespace octavo
