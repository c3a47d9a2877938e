// A scheduler with a minimal engine, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "schedule/scheduler.h"

namespace octavo {

inline SchedulerOptions small_scheduler() {
  SchedulerOptions o;
  o.block_size = 4;
  o.num_blocks = 100;
  o.max_model_len = 200;
  o.max_num_batched_tokens = 64;
  o.max_num_seqs = 8;
  o.max_steps_in_flight = 2;
  return o;
}

inline std::vector<TokenId> count_from(TokenId first, int length) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(length));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct ScheduledEngine {
  explicit ScheduledEngine(SchedulerOptions options) : scheduler(*Scheduler::create(std::move(options))) {}

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
      if (s->length() == s->spec.max_total_tokens) scheduler->finish(p.sequence);
    }
    scheduler->check();
  }

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

}  // namespace octavo
