#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Scheduler, ReadsPromptsInChunksAndThenOneTokenAStep) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId a = engine.add(count_from(0, 100), 3);
  EXPECT_EQ(engine.plan()[a], 64);
  EXPECT_FALSE(engine.step.sequences[0].samples);
  EXPECT_EQ(engine.step.sequences[0].tokens.size(), 64u);
  engine.complete(engine.step);
  EXPECT_EQ(engine.plan()[a], 36);
  EXPECT_TRUE(engine.step.sequences[0].samples);
  EXPECT_EQ(engine.step.sequences[0].first, 64);
  engine.complete(engine.step);
  EXPECT_EQ(engine.run()[a], 1);
  EXPECT_EQ(engine.run()[a], 1);
  EXPECT_FALSE(engine.scheduler->contains(a));
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 0);
}

TEST(Scheduler, DecodesGoBeforeALongPrefill) {
  SchedulerOptions o = small_scheduler();
  o.long_prefill_token_threshold = 10;
  ScheduledEngine engine(o);
  const SequenceId slow = engine.add(count_from(0, 150), 2);
  const SequenceId quick = engine.add(count_from(500, 3), 20);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{slow, 10}, {quick, 3}}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{slow, 10}, {quick, 1}}));
}

TEST(Scheduler, LeavesOutWhoIsParked) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId a = engine.add(count_from(0, 8), 10), b = engine.add(count_from(100, 8), 10);
  engine.run();
  engine.scheduler->park(a);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{b, 1}}));
  engine.scheduler->resume(a);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{a, 1}, {b, 1}}));
  const SequenceId c = engine.add(count_from(200, 8), 10), d = engine.add(count_from(300, 8), 10);
  engine.scheduler->park(c);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{a, 1}, {b, 1}, {d, 8}}));
  engine.scheduler->resume(c);
  EXPECT_EQ(engine.run()[c], 8);
}

// The computed blocks stay cached. retract() does not count as a preemption.
TEST(Scheduler, ComputesAgainWhatIsRetracted) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId a = engine.add(count_from(0, 9), 10), b = engine.add(count_from(100, 9), 10);
  engine.run();
  StepPlan first, second;
  engine.scheduler->plan(first);
  engine.scheduler->plan(second);
  engine.scheduler->collect(first.step);
  for (const SequenceId id : {a, b}) ASSERT_TRUE(engine.scheduler->commit(id, 7));
  engine.scheduler->retract(a);
  engine.scheduler->check();
  engine.scheduler->collect(second.step);
  ASSERT_TRUE(engine.scheduler->commit(b, 7));
  engine.scheduler->check();
  EXPECT_EQ(engine.scheduler->find(a)->tokens.size(), 11u);
  EXPECT_EQ(engine.plan(), (std::map<SequenceId, int>{{a, 3}, {b, 1}}));
  engine.complete(engine.step);
  EXPECT_EQ(engine.scheduler->find(a)->counts.preemptions, 0);
  EXPECT_GT(engine.run_until_idle(), 0);
}

TEST(Scheduler, PlansAheadOfTheTokenItDoesNotKnow) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId a = engine.add(count_from(0, 8), 10);
  StepPlan first, second;
  engine.scheduler->plan(first);
  engine.scheduler->plan(second);
  ASSERT_EQ(second.sequences.size(), 1u);
  EXPECT_EQ(second.sequences[0].first, 8);
  EXPECT_EQ(second.sequences[0].count, 1);
  EXPECT_TRUE(second.sequences[0].last_pending);
  EXPECT_THAT(second.sequences[0].tokens, IsEmpty());
  EXPECT_TRUE(second.sequences[0].samples);
  engine.complete(first);
  engine.scheduler->plan(first);
  EXPECT_EQ(first.sequences[0].first, 9);
  engine.complete(second);
  engine.complete(first);
  EXPECT_EQ(engine.scheduler->find(a)->tokens.size(), 11u);
}

TEST(Scheduler, StopsPlanningWhenTheLastTokenIsOnTheWay) {
  ScheduledEngine engine(small_scheduler());
  engine.add(count_from(0, 8), 1);
  StepPlan first, second;
  engine.scheduler->plan(first);
  engine.scheduler->plan(second);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(second.step, 0u);
}

TEST(Scheduler, KeepsBlocksOfAnAbortedSequenceUntilItsStepIsCollected) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId a = engine.add(count_from(0, 30), 10);
  StepPlan first;
  engine.scheduler->plan(first);
  EXPECT_TRUE(engine.scheduler->finish(a));
  EXPECT_EQ(engine.scheduler->stats().running, 0);
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 8);
  engine.scheduler->collect(first.step);
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 0);
  EXPECT_FALSE(engine.scheduler->commit(a, 1));
  EXPECT_FALSE(engine.scheduler->finish(a));
  EXPECT_EQ(engine.scheduler->stats().blocks_cached, 0) << "what was not collected in time is not shared";
}

TEST(Scheduler, WholePromptsWaitForRoomInTheBudget) {
  SchedulerOptions o = small_scheduler();
  o.enable_chunked_prefill = false;
  o.max_num_batched_tokens = 200;
  ScheduledEngine engine(o);
  const SequenceId first = engine.add(count_from(0, 150), 5), second = engine.add(count_from(500, 150), 5);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 150}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 1}, {second, 150}}));
}

// Options as for an executor with several pipeline stages.
TEST(Scheduler, StepsInFlightShareTheSequencesWhenTheyWaitForTheirTokens) {
  SchedulerOptions o = small_scheduler();
  o.samples_ahead = false;
  ScheduledEngine engine(o);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(engine.add(count_from(100 * i, 5), 20));
  engine.run();
  const auto first = engine.plan();
  const StepPlan launched = engine.step;
  const auto second = engine.plan();
  EXPECT_THAT(first, ElementsAre(std::pair(ids[0], 1), std::pair(ids[1], 1)));
  EXPECT_THAT(second, ElementsAre(std::pair(ids[2], 1)));
  const StepPlan behind = engine.step;
  engine.complete(launched);
  EXPECT_THAT(engine.plan(), ElementsAre(std::pair(ids[0], 1), std::pair(ids[1], 1)));
  engine.complete(behind);
}

}  // namespace
}  // namespace octavo
