#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;

TEST(Scheduler, FindsThePrefixOfAFinishedSequence) {
  ScheduledEngine engine(small_scheduler());
  engine.add(count_from(0, 30), 1);
  engine.run_until_idle();
  const SequenceId b = engine.add(count_from(0, 30), 1);
  EXPECT_EQ(engine.plan()[b], 2);
  EXPECT_EQ(engine.step.sequences[0].cached_tokens, 28);
  engine.complete(engine.step);
  const auto stats = engine.scheduler->stats();
  EXPECT_EQ(stats.prefix_queries, 60);
  EXPECT_EQ(stats.prefix_hits, 28);

  const SequenceId salted = engine.add(count_from(0, 30), 1, 0, {1, 2});
  EXPECT_EQ(engine.run()[salted], 30);
  const SequenceId whole = engine.add(count_from(0, 30), 1, 0, {}, false);
  EXPECT_EQ(engine.run()[whole], 30) << "prompt logprobs need every position";
  engine.scheduler->reset_prefix_cache();
  const SequenceId again = engine.add(count_from(0, 30), 1);
  EXPECT_EQ(engine.run()[again], 30);
}

TEST(Scheduler, ComputesASharedPrefixOnce) {
  ScheduledEngine engine(small_scheduler());
  const auto prompt = count_from(0, 100);
  std::vector<SequenceId> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(engine.add(prompt, 5));
  const SequenceId other = engine.add(count_from(1000, 4), 1);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{answers[0], 64}}));
  // The budget is not used up. A sequence with another prefix does not wait for the sequences that wait for
  // the shared prefix.
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{answers[0], 36}, {other, 4}}));
  auto third = engine.run();
  EXPECT_EQ(third.size(), 8u);
  for (const SequenceId a : answers) EXPECT_EQ(third[a], a == answers[0] ? 1 : 4);
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 24 + 2 + 7);
  engine.run_until_idle();
}

TEST(Scheduler, SharersGoOnWhenTheOneTheyWaitForIsAborted) {
  ScheduledEngine engine(small_scheduler());
  const auto prompt = count_from(0, 100);
  const SequenceId first = engine.add(prompt, 5), second = engine.add(prompt, 5),
                   third = engine.add(prompt, 5);
  engine.plan();
  engine.scheduler->finish(first);
  engine.complete(engine.step);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{second, 64}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{second, 36}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{second, 1}, {third, 4}}));
  engine.run_until_idle();
}

TEST(Scheduler, ComputesASharedPrefixOnceWithinOnePlan) {
  ScheduledEngine engine(small_scheduler());
  const SequenceId first = engine.add(count_from(0, 20), 5), second = engine.add(count_from(0, 20), 5);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 20}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 1}, {second, 4}}));
}

TEST(Scheduler, LongestPrefixGoesFirstButOvertakesNobodyForEver) {
  SchedulerOptions o = small_scheduler();
  o.policy = Policy::longest_prefix;
  o.max_num_seqs = 1;
  ScheduledEngine engine(o);
  engine.add(count_from(0, 40), 1);
  engine.run_until_idle();
  const SequenceId running = engine.add(count_from(500, 8), 4);
  engine.run();
  const SequenceId cold = engine.add(count_from(900, 40), 1);
  const SequenceId warm = engine.add(count_from(0, 20), 1);
  const SequenceId warmer = engine.add(count_from(0, 40), 1);
  while (engine.scheduler->contains(running)) engine.run();
  std::vector<SequenceId> order;
  for (int i = 0; i < 20 && engine.scheduler->contains(cold); ++i) {
    for (const auto& [id, count] : engine.run()) order.push_back(id);
    engine.add(count_from(0, 40), 1);  // sequences with a long prefix keep arriving
  }
  ASSERT_GE(order.size(), 3u);
  order.resize(3);
  EXPECT_THAT(order, ElementsAre(warmer, warm, cold));
}

}  // namespace
}  // namespace octavo
