#include "schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SchedulerOptions small() {
  SchedulerOptions o;
  o.block_size = 4;
  o.num_blocks = 100;
  o.max_model_len = 200;
  o.max_num_batched_tokens = 64;
  o.max_num_seqs = 8;
  o.max_steps_in_flight = 2;
  return o;
}

SchedulerOptions with_states() {
  SchedulerOptions o = small();
  o.saved_states = 10;
  o.mamba_block_size = 16;
  o.max_steps_in_flight = 1;
  return o;
}

std::vector<TokenId> count_from(TokenId first, int length) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(length));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A scheduler with a minimal engine.
struct Engine {
  explicit Engine(SchedulerOptions options) : scheduler(*Scheduler::create(std::move(options))) {}

  SequenceId add(const std::vector<TokenId>& prompt, int answer, std::int64_t priority = 0,
                 Hash128 identity = {}, bool read_prefix_cache = true) {
    const auto id = scheduler->add({.prompt = prompt,
                                    .max_total_tokens = static_cast<int>(prompt.size()) + answer,
                                    .priority = priority,
                                    .identity = identity,
                                    .read_prefix_cache = read_prefix_cache});
    EXPECT_TRUE(id.has_value()) << id.error().message;
    return *id;
  }

  // Tokens planned for each sequence of the next step.
  std::map<SequenceId, int> plan() {
    scheduler->plan(step);
    scheduler->check();
    std::map<SequenceId, int> counts;
    for (const PlannedSequence& p : step.sequences) counts[p.sequence] = p.count;
    return counts;
  }

  void complete(const StepPlan& done) {
    scheduler->collect(done.step);
    for (const PlannedSequence& p : done.sequences) {
      if (!p.samples || !scheduler->commit(p.sequence, 7)) continue;
      const Sequence* s = scheduler->find(p.sequence);
      if (s->length() == s->max_total_tokens) scheduler->finish(p.sequence);
    }
    scheduler->check();
  }

  // Plans and completes a step; returns the planned tokens.
  std::map<SequenceId, int> run() {
    auto counts = plan();
    if (!step.empty()) complete(step);
    return counts;
  }

  int run_until_idle() {
    int steps = 0;
    while (!run().empty()) ++steps;
    EXPECT_EQ(scheduler->stats().blocks_used, 0);
    return steps;
  }

  std::unique_ptr<Scheduler> scheduler;
  StepPlan step;
};

TEST(Scheduler, ReadsPromptsInChunksAndThenOneTokenAStep) {
  Engine engine(small());
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
  SchedulerOptions o = small();
  o.long_prefill_token_threshold = 10;
  Engine engine(o);
  const SequenceId slow = engine.add(count_from(0, 150), 2);
  const SequenceId quick = engine.add(count_from(500, 3), 20);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{slow, 10}, {quick, 3}}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{slow, 10}, {quick, 1}}));
}

TEST(Scheduler, LeavesOutWhoIsParked) {
  Engine engine(small());
  const SequenceId a = engine.add(count_from(0, 8), 10), b = engine.add(count_from(100, 8), 10);
  engine.run();
  engine.scheduler->park(a);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{b, 1}}));
  engine.scheduler->resume(a);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{a, 1}, {b, 1}}));
  // Also in the queue.
  const SequenceId c = engine.add(count_from(200, 8), 10), d = engine.add(count_from(300, 8), 10);
  engine.scheduler->park(c);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{a, 1}, {b, 1}, {d, 8}}));
  engine.scheduler->resume(c);
  EXPECT_EQ(engine.run()[c], 8);
}

// Earlier computed and shared blocks stay cached, and this is not a preemption.
TEST(Scheduler, ComputesAgainWhatIsRetracted) {
  Engine engine(small());
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
  EXPECT_EQ(engine.plan(), (std::map<SequenceId, int>{{a, 3}, {b, 1}}));  // two blocks were full
  engine.complete(engine.step);
  EXPECT_EQ(engine.scheduler->find(a)->preemptions, 0);
  EXPECT_GT(engine.run_until_idle(), 0);
}

TEST(Scheduler, PlansAheadOfTheTokenItDoesNotKnow) {
  Engine engine(small());
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
  Engine engine(small());
  engine.add(count_from(0, 8), 1);
  StepPlan first, second;
  engine.scheduler->plan(first);
  engine.scheduler->plan(second);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(second.step, 0u);
}

TEST(Scheduler, KeepsBlocksOfAnAbortedSequenceUntilItsStepIsCollected) {
  Engine engine(small());
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

TEST(Scheduler, FindsThePrefixOfAFinishedSequence) {
  Engine engine(small());
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
  Engine engine(small());
  const auto prompt = count_from(0, 100);
  std::vector<SequenceId> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(engine.add(prompt, 5));
  const SequenceId other = engine.add(count_from(1000, 4), 1);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{answers[0], 64}}));
  // Budget is left, and an unrelated sequence need not wait for those that wait for the prefix.
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{answers[0], 36}, {other, 4}}));
  auto third = engine.run();
  EXPECT_EQ(third.size(), 8u);
  for (const SequenceId a : answers) EXPECT_EQ(third[a], a == answers[0] ? 1 : 4);
  EXPECT_EQ(engine.scheduler->stats().blocks_used, 24 + 2 + 7);
  engine.run_until_idle();
}

TEST(Scheduler, SharersGoOnWhenTheOneTheyWaitForIsAborted) {
  Engine engine(small());
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
  Engine engine(small());
  const SequenceId first = engine.add(count_from(0, 20), 5), second = engine.add(count_from(0, 20), 5);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 20}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 1}, {second, 4}}));
}

TEST(Scheduler, WholePromptsWaitForRoomInTheBudget) {
  SchedulerOptions o = small();
  o.enable_chunked_prefill = false;
  o.max_num_batched_tokens = 200;
  Engine engine(o);
  const SequenceId first = engine.add(count_from(0, 150), 5), second = engine.add(count_from(500, 150), 5);
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 150}}));
  EXPECT_EQ(engine.run(), (std::map<SequenceId, int>{{first, 1}, {second, 150}}));
}

TEST(Scheduler, PreemptsTheYoungestAndGivesItItsPlaceBack) {
  for (const Policy policy : {Policy::fcfs, Policy::longest_prefix}) {
    SchedulerOptions o = small();
    o.policy = policy;
    o.num_blocks = 10;
    Engine engine(o);
    const SequenceId old = engine.add(count_from(0, 16), 20);
    const SequenceId young = engine.add(count_from(100, 16), 20);
    const SequenceId last = engine.add(count_from(200, 16), 20);
    engine.run();
    EXPECT_EQ(engine.scheduler->stats().running, 2);
    engine.run();
    engine.add(count_from(300, 16), 20);  // after the last sorting of the queue
    while (engine.scheduler->stats().preemptions == 0) engine.run();
    EXPECT_EQ(engine.scheduler->find(young)->preemptions, 1);
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

// The blocks of a victim in flight are free one step later: no second sequence is preempted meanwhile.
TEST(Scheduler, CountsOnBlocksThatAreOnTheirWay) {
  SchedulerOptions o = small();
  o.num_blocks = 9;
  Engine engine(o);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(engine.add(count_from(100 * i, 8), 8));  // two blocks each
  StepPlan first, second;
  engine.scheduler->plan(first);
  ASSERT_EQ(first.sequences.size(), 4u);
  engine.scheduler->plan(second);  // all need a third block, one is free
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
  SchedulerOptions o = small();
  o.policy = Policy::priority;
  o.num_blocks = 10;
  Engine engine(o);
  const SequenceId low = engine.add(count_from(0, 16), 20, 5);
  const SequenceId middle = engine.add(count_from(200, 16), 20, 3);
  const SequenceId high = engine.add(count_from(100, 16), 20, -1);
  engine.run();
  EXPECT_EQ(engine.scheduler->find(low)->state, Sequence::State::waiting);
  while (engine.scheduler->stats().preemptions == 0) engine.run();
  EXPECT_EQ(engine.scheduler->find(middle)->preemptions, 1);
  EXPECT_EQ(engine.scheduler->find(high)->preemptions, 0);
  engine.run_until_idle();
}

TEST(Scheduler, LongestPrefixGoesFirstButOvertakesNobodyForEver) {
  SchedulerOptions o = small();
  o.policy = Policy::longest_prefix;
  o.max_num_seqs = 1;
  Engine engine(o);
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
    engine.add(count_from(0, 40), 1);  // a stream of arrivals with a long prefix
  }
  ASSERT_GE(order.size(), 3u);
  order.resize(3);
  EXPECT_THAT(order, ElementsAre(warmer, warm, cold));
}

TEST(Scheduler, AdmissionLeavesTheWatermarkFree) {
  SchedulerOptions o = small();
  o.num_blocks = 20;
  o.watermark = 0.5;
  Engine engine(o);
  engine.add(count_from(0, 40), 2);
  engine.add(count_from(100, 40), 2);
  EXPECT_EQ(engine.run().size(), 1u);
  engine.run_until_idle();
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  SchedulerOptions o = small();
  o.num_blocks = 10;
  const auto scheduler = *Scheduler::create(o);
  const auto refusal = [&](int prompt, int total) {
    const auto tokens = count_from(0, prompt);
    const auto id = scheduler->add({.prompt = tokens, .max_total_tokens = total});
    return id ? std::string("admitted") : id.error().field + ": " + id.error().message;
  };
  EXPECT_THAT(refusal(0, 10), HasSubstr("prompt: the prompt is empty"));
  EXPECT_THAT(refusal(200, 200), HasSubstr("at most 199"));
  EXPECT_THAT(refusal(10, 10),
              HasSubstr("max_tokens: 10 tokens of prompt and answer, must be from 11 to 200"));
  EXPECT_THAT(refusal(10, 201), HasSubstr("must be from 11 to 200"));
  EXPECT_THAT(refusal(10, 42),
              HasSubstr("42 tokens of prompt and answer need 11 cache blocks, there are 10"));
  EXPECT_EQ(refusal(10, 41), "admitted") << "the last token is never computed";
  EXPECT_EQ(scheduler->stats().waiting, 1);
}

TEST(Scheduler, RefusesOneMoreThanItHasPlacesFor) {
  SchedulerOptions o = small();
  o.max_sequences = 8;
  Engine engine(o);
  for (int i = 0; i < 8; ++i) engine.add(count_from(0, 5), 1);
  const auto tokens = count_from(0, 5);
  const auto id = engine.scheduler->add({.prompt = tokens, .max_total_tokens = 6});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::resource_exhausted);
  engine.run_until_idle();
  EXPECT_TRUE(engine.scheduler->add({.prompt = tokens, .max_total_tokens = 6}));
}

TEST(Scheduler, OptionsNameWhatIsWrong) {
  const auto field = [](auto change) {
    SchedulerOptions o = small();
    change(o);
    const auto result = Scheduler::create(o);
    return result ? std::string() : result.error().field;
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& o) { o.num_blocks = 0; }), "num_blocks");
  EXPECT_EQ(field([](auto& o) { o.block_size = 0; }), "block_size");
  EXPECT_EQ(field([](auto& o) { o.max_model_len = 1; }), "max_model_len");
  EXPECT_EQ(field([](auto& o) { o.max_num_batched_tokens = 7; }), "max_num_batched_tokens");
  EXPECT_EQ(field([](auto& o) { o.watermark = 1.0; }), "watermark");
  EXPECT_EQ(field([](auto& o) { o.groups.clear(); }), "groups");
  EXPECT_EQ(field([](auto& o) { o.groups = {CacheGroup{-1}}; }), "window");
  EXPECT_THAT(field([](auto& o) { o.enable_chunked_prefill = false; }), HasSubstr("max_num_batched_tokens"));
}

// 64 clients with 1.2 times the blocks of one: all finish, within the limit on preemptions.
TEST(Scheduler, ServesManyClientsOnAPoolForOne) {
  for (const Policy policy : {Policy::fcfs, Policy::priority, Policy::longest_prefix}) {
    SchedulerOptions o = small();
    o.policy = policy;
    o.max_num_batched_tokens = 128;
    o.max_num_seqs = 64;
    o.num_blocks = 60;  // one of 200 tokens takes 50
    Engine engine(o);
    std::vector<SequenceId> clients;
    for (int i = 0; i < 64; ++i) clients.push_back(engine.add(count_from(i * 1000, 20), 180, i % 3));
    int most = 0;
    for (int steps = 0; !engine.run().empty(); ++steps) {
      ASSERT_LT(steps, 64 * 200 * (1 + o.max_preemptions));
      for (const SequenceId id : clients)
        if (const Sequence* s = engine.scheduler->find(id)) most = std::max(most, s->preemptions);
    }
    for (const SequenceId id : clients) EXPECT_FALSE(engine.scheduler->contains(id));
    EXPECT_LE(most, o.max_preemptions);
    EXPECT_GT(engine.scheduler->stats().preemptions, 0);
    EXPECT_EQ(engine.scheduler->stats().blocks_used, 0);
  }
}

// As with executors of several stages.
TEST(Scheduler, StepsInFlightShareTheSequencesWhenTheyWaitForTheirTokens) {
  SchedulerOptions o = small();
  o.samples_ahead = false;
  Engine engine(o);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(engine.add(count_from(100 * i, 5), 20));
  engine.run();  // the prompts
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

// The limit that a loaded model reports is the limit that the scheduler admits.
TEST(SchedulerOptions, TheLongestSequenceIsTheLongestThatFits) {
  const std::vector<std::vector<CacheGroup>> all_groups = {{{0}}, {{0}, {64}}, {{64}}, {{0}, {100}, {7}}};
  for (const std::vector<CacheGroup>& groups : all_groups)
    for (const int steps : {1, 2})
      for (const int blocks : {3, 10, 31, 100}) {
        SchedulerOptions o;
        o.num_blocks = blocks;
        o.groups = groups;
        o.max_num_seqs = 4;
        o.max_num_batched_tokens = 48;
        o.max_steps_in_flight = steps;
        o.max_model_len = 4000;
        const int longest = longest_sequence(o);
        if (longest < 2) continue;
        o.max_model_len = longest;
        const auto fits = [&] {
          return (*Scheduler::create(o))
              ->fits(static_cast<std::size_t>(o.max_model_len) - 1, o.max_model_len);
        };
        EXPECT_TRUE(fits().has_value()) << fits().error().message;
        o.max_model_len = longest + 1;
        EXPECT_TRUE(longest == 4000 || !fits().has_value()) << longest << " is not the longest";
      }
}

// A chunk ends where a state can be saved, at the last multiple of mamba_block_size in it.
TEST(SavedStates, LieAtMultiplesOfTheInterval) {
  Engine engine(with_states());
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
  EXPECT_EQ(saved, 1);  // after token 112
}

TEST(SavedStates, APrefixEndsWhereOneIs) {
  Engine engine(with_states());
  engine.add(count_from(0, 60), 1);  // saved at 48
  EXPECT_EQ(engine.run_until_idle(), 2);
  const SequenceId same = engine.add(count_from(0, 60), 1);
  EXPECT_EQ(engine.plan()[same], 8);  // to the end of the cached blocks, where a state is saved now
  EXPECT_EQ(engine.step.sequences[0].first, 48);
  EXPECT_NE(engine.step.sequences[0].state_from, kNoState);
  EXPECT_EQ(engine.step.sequences[0].cached_tokens, 48);
  engine.complete(engine.step);
  engine.run_until_idle();
  // Blocks are cached up to 40, but no state: this sequence saves one where it branches off, for the next.
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

// Fewer slots than sequences that could save a state.
TEST(SavedStates, AreBounded) {
  SchedulerOptions o = with_states();
  o.saved_states = 2;
  Engine engine(o);
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
