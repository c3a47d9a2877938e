#include "determinism.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

constexpr std::size_t kExamplesMax = 8;

// The number of draft tokens depends on measured times. The test repeats up to this number of rounds until
// one is accepted, and until a sequence is preempted.
constexpr int kTightRounds = 5;

struct Variation {
  const char* name;
  RigOptions options;
  bool alone = false;
  int rounds = 1;  // in the second round, prefixes are in the cache
  bool preempts = false;
};

constexpr const char* kDemoDraft = "models/demo-draft";

// enough for the longest request and a few short ones
constexpr int kTightBlocks = 34;

// Returns options with `tokens` draft tokens for all batch sizes.
SpeculativeOptions drafting(const decltype(SpeculativeOptions::method)& method, int tokens) {
  return {.method = method, .num_speculative_tokens = tokens, .per_batch_size = {{1, 1 << 20, tokens}}};
}

std::vector<Variation> variations(const RigOptions& base) {
  std::vector<Variation> all;
  const auto add = [&](const char* variation) -> Variation& { return all.emplace_back(variation, base); };
  {
    Variation& v = add("alone, then warm");
    v.alone = true;
    v.rounds = 2;
  }
  {
    Variation& v = add("alone, chunks of 7, cache off");
    v.alone = true;
    v.options.prefix_caching = false;
    v.options.long_prefill_token_threshold = 7;
  }
  {
    Variation& v = add("batch of 64, then warm");
    v.rounds = 2;
  }
  {
    Variation& v = add("batch of 64, 4 threads");
    v.options.threads = 4;
  }
  {
    Variation& v = add("batch of 64, cache off");
    v.options.prefix_caching = false;
  }
  {
    Variation& v = add("batch of 64, chunks of 1");
    v.options.long_prefill_token_threshold = 1;
  }
  {
    Variation& v = add("batch of 64, chunks of 7, 4 threads, cache off");
    v.options.threads = 4;
    v.options.prefix_caching = false;
    v.options.long_prefill_token_threshold = 7;
  }
  {
    Variation& v = add("batch of 64, chunks of 64, longest prefix first");
    v.options.long_prefill_token_threshold = 64;
    v.options.policy = Policy::longest_prefix;
  }
  {
    Variation& v = add("batch of 64, steps of 64 tokens");
    v.options.max_num_batched_tokens = 64;
  }
  {
    Variation& v = add("batch of 64, draft tokens, then warm");
    v.options.speculation = drafting(NgramOptions{1, 3}, 5);
    v.rounds = 2;
  }
  {
    Variation& v = add("preemption, by arrival, draft tokens");
    v.options.num_blocks = kTightBlocks;
    v.options.speculation = drafting(NgramOptions{2, 4}, 3);
    v.preempts = true;
  }
  {
    Variation& v = add("batch of 64, draft model, then warm");
    v.options.speculation = drafting(DraftModelOptions{.model = kDemoDraft}, 4);
    v.rounds = 2;
  }
  {
    Variation& v = add("preemption, by arrival, draft model without blocks for all");
    v.options.num_blocks = kTightBlocks;
    v.options.speculation = {
        {.method = DraftModelOptions{.model = kDemoDraft, .drawn = false}, .num_speculative_tokens = 3}};
    v.preempts = true;
  }
  {
    Variation& v = add("batch of 64, steps of 64 tokens, suffixes, then warm");
    v.options.max_num_batched_tokens = 64;
    v.options.speculation = drafting(SuffixOptions{}, 24);
    v.rounds = 2;
  }
  {
    Variation& v = add("preemption, by priority, steps of 100 tokens, cache off, 4 threads");
    v.options.num_blocks = kTightBlocks;
    v.options.policy = Policy::priority;
    v.options.max_num_batched_tokens = 100;
    v.options.prefix_caching = false;
    v.options.threads = 4;
    v.preempts = true;
  }
  return all;
}

std::string describe(const Transcript& got, const Transcript& alone) {
  const auto first_difference = [](const auto& a, const auto& b) {
    return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  };
  return fmt::format("{} tokens, alone {}: the first difference at token {}, at word {} of the logprobs",
                     got.tokens.size(), alone.tokens.size(), first_difference(got.tokens, alone.tokens),
                     first_difference(got.logprobs, alone.logprobs));
}

void compare(const std::vector<Answers>& got, const std::vector<Answers>& alone, const std::string& where,
             Report& report) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    ++report.pairs;
    if (got[i] == alone[i]) continue;
    ++report.differences;
    if (report.examples.size() >= kExamplesMax) continue;
    for (std::size_t n = 0; n < alone[i].size(); ++n)
      if (got[i][n] != alone[i][n])
        report.examples.push_back(
            fmt::format("{}, request {}, answer {}: {}", where, i, n, describe(got[i][n], alone[i][n])));
  }
}

}  // namespace

std::string name(const Level& level) {
  return fmt::format(
      "{}_{}{}{}", name(level.isa), level.dtype == ModelDType::float32 ? "float32" : "bfloat16",
      level.quantization == Encoding::plain ? "" : fmt::format("_{}", name(level.quantization)),
      level.cache_dtype ? fmt::format("_cache_{}", name(*level.cache_dtype)) : "");
}

std::vector<Level> levels() {
  std::vector<Level> all;
  for (const CpuIsa isa : kCpuIsas)
    for (const ModelDType dtype : {ModelDType::bfloat16, ModelDType::float32})
      if (make_cpu_backend({.threads = 1, .isa = isa})) all.push_back({isa, dtype, {}});
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i)
    for (const Encoding encoding : {Encoding::int8, Encoding::int4})
      if (all[i].dtype == ModelDType::bfloat16) all.push_back({all[i].isa, all[i].dtype, {}, encoding});
  // the best instruction set also runs with 8-bit caches
  if (!all.empty())
    for (const DType cache : {DType::f8_e4m3, DType::i8})
      all.push_back({all.back().isa, ModelDType::bfloat16, cache});
  return all;
}

void Report::add(const Report& other) {
  pairs += other.pairs;
  differences += other.differences;
  preemptions += other.preemptions;
  examples.insert(examples.end(), other.examples.begin(), other.examples.end());
  roomy.insert(roomy.end(), other.roomy.begin(), other.roomy.end());
}

Report check_determinism(const Level& level, int requests, std::uint32_t seed, const std::string& model,
                         VariationPart part) {
  RigOptions base;
  base.isa = level.isa;
  base.dtype = level.dtype;
  base.cache_dtype = level.cache_dtype;
  base.quantization = level.quantization;
  base.model = model;

  RigOptions plain = base;
  plain.prefix_caching = false;
  Rig reference(plain);
  const std::vector<Request> requested = random_requests(reference, requests, seed);
  const std::vector<Answers> alone = reference.run_alone(requested);

  Report report;
  int index = 0;
  for (const Variation& variation : variations(base)) {
    if (index++ % part.of != part.part) continue;
    Rig rig(variation.options);
    EngineStats stats;
    // Some variations need more rounds, because arrivals and the number of draft tokens depend on time.
    const auto lacks_drafts = [&] { return variation.options.speculation && stats.drafts.accepted[0] == 0; };
    const auto again = [&](int round) {
      const bool lacks = (variation.preempts && stats.preemptions == 0) || lacks_drafts();
      return round < variation.rounds || (lacks && round < kTightRounds);
    };
    const auto answers = [&](Rig& of) {
      if (variation.alone) return of.run_alone(requested);
      return variation.preempts ? of.run_paused(requested) : of.run(requested);
    };
    for (int round = 0; again(round); ++round) {
      compare(answers(rig), alone, fmt::format("{}, {}, round {}", name(level), variation.name, round),
              report);
      stats = rig.idle_stats();
    }
    report.preemptions += stats.preemptions;
    if (variation.preempts && stats.preemptions == 0) report.roomy.emplace_back(variation.name);
    if (lacks_drafts()) {
      ++report.differences;
      report.examples.push_back(fmt::format("{}: no draft token was accepted", variation.name));
    }
    if (stats.blocks.used != 0 || stats.requests.unfinished != 0) {
      ++report.differences;
      report.examples.push_back(fmt::format("{}: {} blocks used, {} answers unfinished at the end",
                                            variation.name, stats.blocks.used, stats.requests.unfinished));
    }
  }
  return report;
}

}  // namespace octavo
