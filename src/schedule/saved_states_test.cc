#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

SchedulerOptions with_states() {
  SchedulerOptions o = small_scheduler();
  o.saved_states = 10;
  o.mamba_block_size = 16;
  o.max_steps_in_flight = 1;
  return o;
}

// A chunk ends at its last multiple of mamba_block_size, where a state can be saved.
TEST(SavedStates, LieAtMultiplesOfTheInterval) {
  ScheduledEngine engine(with_states());
  engine.add(count_from(0, 100), 20);
  for (const int count : {64, 32, 4, 1, 1}) {
    EXPECT_EQ(engine.plan().begin()->second, count);
    const PlannedSequence& p = engine.step.sequences[0];
    EXPECT_EQ(p.state_to != kNoState, p.end() % 16 == 0) << p.end();
    EXPECT_EQ(p.state_from, kNoState);
    engine.complete(engine.step);
  }
  int saved = 0;
  while (!engine.plan().empty()) {
    saved += engine.step.sequences[0].state_to != kNoState;
    engine.complete(engine.step);
  }
  EXPECT_EQ(saved, 1);  // the state after token 112 is saved
}

TEST(SavedStates, APrefixEndsWhereOneIs) {
  ScheduledEngine engine(with_states());
  engine.add(count_from(0, 60), 1);  // saves its state after token 48
  EXPECT_EQ(engine.run_until_idle(), 2);
  const SequenceId same = engine.add(count_from(0, 60), 1);
  EXPECT_EQ(engine.plan()[same], 8);  // up to the end of the cached blocks, where a state is saved now
  EXPECT_EQ(engine.step.sequences[0].first, 48);
  EXPECT_NE(engine.step.sequences[0].state_from, kNoState);
  EXPECT_EQ(engine.step.sequences[0].cached_tokens, 48);
  engine.complete(engine.step);
  engine.run_until_idle();
  // Blocks are cached up to token 40, but no state is. So this sequence saves a state at the end of the
  // cached blocks, and the next sequence uses that state.
  for (const int first : {0, 40}) {
    std::vector<TokenId> other = count_from(0, 60);
    std::iota(other.begin() + 43, other.end(), 1000 + first);
    engine.add(other, 1);
    engine.plan();
    EXPECT_EQ(engine.step.sequences[0].first, first);
    EXPECT_EQ(engine.step.sequences[0].end(), first == 0 ? 40 : 48);
    engine.complete(engine.step);
    engine.run_until_idle();
  }
  engine.scheduler->reset_prefix_cache();
  engine.add(count_from(0, 60), 1);
  engine.plan();
  EXPECT_EQ(engine.step.sequences[0].first, 0);
}

TEST(SavedStates, AreBounded) {
  SchedulerOptions o = with_states();
  o.saved_states = 2;
  ScheduledEngine engine(o);
  for (int i = 0; i < 4; ++i) engine.add(count_from(100 * i, 17), 1);
  EXPECT_EQ(engine.run().size(), 4u);
  EXPECT_GT(engine.run_until_idle(), 0);
  int found = 0;
  for (int i = 0; i < 4; ++i) {
    engine.add(count_from(100 * i, 17), 1);
    engine.plan();
    found += engine.step.sequences[0].state_from != kNoState;
    engine.complete(engine.step);
    engine.run_until_idle();
  }
  EXPECT_LE(found, 2);
  EXPECT_GT(found, 0);
}

TEST(SavedStates, NeedWholeBlocksAndPrefixCaching) {
  SchedulerOptions o = with_states();
  o.mamba_block_size = 18;
  EXPECT_EQ(Scheduler::create(o).error().field, "mamba_block_size");
  o = with_states();
  o.enable_prefix_caching = false;
  EXPECT_EQ(Scheduler::create(o).error().field, "saved_states");
}

}  // namespace
}  // namespace octavo
