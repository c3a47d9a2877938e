#include <benchmark/benchmark.h>

#include <numeric>

#include "base/random.h"
#include "schedule/scheduler.h"

namespace octavo {
namespace {

std::vector<TokenId> random_tokens(int length, std::uint64_t seed) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<TokenId>(random_bits(seed, i) % 100'000);
  return tokens;
}

SchedulerOptions options_for(int sequences, int length) {
  SchedulerOptions o;
  o.max_num_seqs = sequences;
  o.max_model_len = length;
  o.max_num_batched_tokens = std::max(8192, sequences);
  o.num_blocks = sequences * (length / o.block_size + 1);
  o.max_steps_in_flight = 1;
  return o;
}

// All sequences decode. The benchmark measures the time of plan(). A counter reports the time of collect()
// and commit(), in microseconds.
void plan_a_decode_step(benchmark::State& state) {
  const auto sequences = static_cast<int>(state.range(0));
  constexpr int kPrompt = 256, kLength = 2048;
  const auto scheduler = *Scheduler::create(options_for(sequences, kLength));
  StepPlan plan;
  const auto complete = [&] {
    scheduler->collect(plan.step);
    for (const PlannedSequence& p : plan.sequences)
      if (p.samples) scheduler->commit(p.sequence, 1);
  };
  const auto fill = [&] {
    for (int i = 0; i < sequences; ++i) {
      const auto prompt = random_tokens(kPrompt, static_cast<std::uint64_t>(i));
      scheduler->add({.prompt = prompt, .max_total_tokens = kLength});
    }
    do {
      scheduler->plan(plan);
      complete();
    } while (plan.tokens != sequences);
  };
  fill();
  int steps = kLength - kPrompt - 64;
  for (auto _ : state) {
    scheduler->plan(plan);
    state.PauseTiming();
    complete();
    if (--steps == 0) {
      for (const PlannedSequence& p : plan.sequences) scheduler->finish(p.sequence);
      fill();
      steps = kLength - kPrompt - 64;
    }
    state.ResumeTiming();
  }
}
BENCHMARK(plan_a_decode_step)->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);

void whole_decode_step(benchmark::State& state) {
  const auto sequences = static_cast<int>(state.range(0));
  constexpr int kPrompt = 64, kLength = 1 << 15;
  SchedulerOptions o = options_for(sequences, kLength);
  const auto scheduler = *Scheduler::create(o);
  for (int i = 0; i < sequences; ++i) {
    const auto prompt = random_tokens(kPrompt, static_cast<std::uint64_t>(i));
    scheduler->add({.prompt = prompt, .max_total_tokens = kLength});
  }
  StepPlan plan;
  const auto step = [&] {
    scheduler->plan(plan);
    scheduler->collect(plan.step);
    for (const PlannedSequence& p : plan.sequences)
      if (p.samples) scheduler->commit(p.sequence, 1);
  };
  for (int i = 0; i < 100; ++i) step();
  for (auto _ : state) step();
}
BENCHMARK(whole_decode_step)->Arg(64)->Arg(1024)->Iterations(10'000)->Unit(benchmark::kMicrosecond);

// A thousand sequences wait for admission. Each sequence has a prompt of 100 cached blocks.
void plan_with_a_queue(benchmark::State& state) {
  SchedulerOptions o = options_for(1024, 2048);
  o.policy = static_cast<Policy>(state.range(0));
  o.max_num_seqs = 2;
  o.num_blocks = 1'000;
  const auto scheduler = *Scheduler::create(o);
  const auto prompt = random_tokens(1601, 1);
  const auto other = random_tokens(1601, 2);
  for (int i = 0; i < 1024; ++i)
    scheduler->add({.prompt = i % 2 == 0 ? prompt : other, .max_total_tokens = 1800});
  StepPlan plan;
  for (auto _ : state) {
    scheduler->plan(plan);
    state.PauseTiming();
    scheduler->collect(plan.step);
    for (const PlannedSequence& p : plan.sequences) {
      if (!p.samples || !scheduler->commit(p.sequence, 1)) continue;
      scheduler->finish(p.sequence);  // A sequence ends, so that each step can admit another one.
      scheduler->add({.prompt = prompt, .max_total_tokens = 1800});
    }
    state.ResumeTiming();
  }
}
BENCHMARK(plan_with_a_queue)
    ->ArgName("policy")
    ->Arg(static_cast<int>(Policy::fcfs))
    ->Arg(static_cast<int>(Policy::longest_prefix))
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace octavo
