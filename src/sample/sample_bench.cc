// Measures the time of a sampling step for several numbers of rows, vocabulary sizes and sampling features.
#include <benchmark/benchmark.h>

#include <random>

#include "kernels/backends.h"
#include "sample/sampler.h"

namespace octavo {
namespace {

enum Kind { greedy, plain, top_k_top_p, top_p, logprobs_20, penalties };
constexpr const char* kNames[] = {"greedy", "plain", "top_k+top_p", "top_p", "logprobs 20", "penalties"};

SamplingParams params_of(Kind kind) {
  SamplingParams params;
  if (kind == greedy || kind == logprobs_20) params.temperature = 0;
  if (kind == top_k_top_p) params.top_k = 50;
  if (kind == top_k_top_p || kind == top_p) params.top_p = 0.9;
  if (kind == logprobs_20) params.logprobs.output = 20;
  if (kind == penalties) params.penalties.repetition = 1.1, params.penalties.presence = 0.5;
  return params;
}

void sample(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const int vocab = static_cast<int>(state.range(1));
  const SamplingParams params = params_of(static_cast<Kind>(state.range(2)));
  Backend backend = make_cpu_backend({.threads = static_cast<int>(state.range(3)), .isa = {}}).value();
  Sampler sampler(backend, {});
  if (!sampler.reserve(state.range(0), vocab)) return state.SkipWithError("no memory");

  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(rows * static_cast<std::size_t>(vocab));
  for (float& x : logits) x = normal(rng);
  for (std::size_t r = 0; r < rows; ++r)
    // Models usually give one token most of the probability.
    logits[r * static_cast<std::size_t>(vocab) + rng() % 1000] = 18;
  std::vector<TokenId> prompt(1000);
  for (TokenId& id : prompt) id = static_cast<TokenId>(rng() % static_cast<unsigned>(vocab));
  std::vector<SequenceSampling> sequences;
  for (std::size_t r = 0; r < rows; ++r)
    sequences.emplace_back(params, prompt, std::vector<TokenId>{0}, r, vocab);
  std::vector<SampleRow> step;
  for (const SequenceSampling& sequence : sequences) step.push_back({&sequence, {}});

  const View view = View::of(logits.data(), DType::f32, {state.range(0), vocab});
  for (auto _ : state) {
    if (!sampler.launch(view, step)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(sampler.collect().data());
  }
  state.SetLabel(kNames[state.range(2)]);
  const auto time_each = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
  state.counters["row"] = benchmark::Counter(static_cast<double>(rows), time_each);
}
BENCHMARK(sample)
    ->ArgNames({"rows", "vocab", "", "threads"})
    ->ArgsProduct({{1, 16, 256},
                   {32000, 128000, 256000},
                   {greedy, plain, top_k_top_p, top_p, logprobs_20, penalties},
                   {1, 4}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// With a vocabulary of two tokens, the step consists almost only of packing the rows, one call of the
// thread pool, and reading the result.
void pack_256_rows(benchmark::State& state) {
  constexpr std::size_t kRows = 256;
  SamplingParams params;
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  Sampler sampler(backend, {});
  if (!sampler.reserve(kRows, 2)) return state.SkipWithError("no memory");
  std::vector<float> logits(kRows * 2);
  const SequenceSampling sequence(params, {}, {}, 1, 2);
  const std::vector<SampleRow> step(kRows, SampleRow{&sequence, {}});
  const View view = View::of(logits.data(), DType::f32, {kRows, 2});
  for (auto _ : state) {
    if (!sampler.launch(view, step)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(sampler.collect().data());
  }
}
BENCHMARK(pack_256_rows)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace octavo
