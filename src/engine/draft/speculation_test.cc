// Tests engines with speculative decoding. The outputs must have the same bits with every proposer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "base/testing/eventually.h"
#include "base/testing/length.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "engine/testing/tier_rig.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

constexpr int kDraftRequests = 7;

EngineOptions demo() {
  EngineOptions options;
  options.model.dir = "models/demo";
  options.device.type = "cpu";
  options.device.threads = 2;
  options.schedule.max_num_batched_tokens = 256;
  options.schedule.max_num_seqs = 6;
  options.cache.memory_bytes = 8 << 20;
  return options;
}

SpeculativeOptions with_draft(const std::string& model, bool drawn = true) {
  return {.method = DraftModelOptions{.model = model, .drawn = drawn}, .num_speculative_tokens = 4};
}

// Returns the counters with the last step. The engine updates them after it has delivered the last output.
DraftStats drafts_of(Engine& engine) {
  EXPECT_TRUE(eventually([&] { return engine.own_stats().requests.unfinished == 0; }));
  return engine.own_stats().drafts;
}

std::int64_t accepted(Engine& engine) {
  const auto by_position = drafts_of(engine).accepted;
  return std::accumulate(by_position.begin(), by_position.end(), std::int64_t{0});
}

TEST(Speculation, AnswersAreThoseWithoutDrafts) {
  const std::vector<CollectedAnswer> plain = answers_of(*load_engine(demo()).value(), kDraftRequests);
  struct Variation {
    const char* name;
    SpeculativeOptions speculation;
    int tokens = 256;
    std::optional<int> blocks = {};
    bool prefix_caching = true;
  };
  const Variation variations[] = {
      {"drawn", with_draft("models/demo-draft")},
      {"greedy", with_draft("models/demo-draft", false)},
      {"itself", with_draft("models/demo")},
      {"small steps", with_draft("models/demo-draft"), 16},
      {"preempted", with_draft("models/demo-draft"), 48, 9},
      {"int8", {.method = DraftModelOptions{.model = "models/demo-draft", .quantization = "int8"}}},
      {"short context", {.method = DraftModelOptions{.model = "models/demo-draft", .max_model_len = 32}}},
      {"head",
       {.method = HeadOptions{.kind = HeadOptions::Kind::eagle3, .model = "models/demo-eagle3"},
        .num_speculative_tokens = 4},
       48,
       9},
      {"suffix", {.method = SuffixOptions{}, .num_speculative_tokens = 24}},
      {"suffix, no prefix cache", {.method = SuffixOptions{}, .num_speculative_tokens = 8}, 64, {}, false},
  };
  for (const Variation& v : variations) {
    EngineOptions options = demo();
    options.speculation = v.speculation;
    options.speculation->per_batch_size = {{1, 6, options.speculation->num_speculative_tokens}};
    options.schedule.max_num_batched_tokens = v.tokens;
    options.cache.num_blocks = v.blocks;
    options.cache.enable_prefix_caching = v.prefix_caching;
    const auto engine = load_engine(options).value();
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(answers_of(*engine, kDraftRequests), plain) << v.name << ", round " << round;
    EXPECT_GT(accepted(*engine), 0) << v.name;
  }
}

constexpr const char* kDrafters = "tests/data/drafters/";

EngineOptions with_head(HeadOptions::Kind kind, const std::string& target, const std::string& head) {
  EngineOptions options = demo();
  options.model.dir = kDrafters + target;
  options.cache.memory_bytes = 4 << 20;
  options.speculation =
      SpeculativeOptions{.method = HeadOptions{.kind = kind, .model = head.empty() ? "" : kDrafters + head},
                         .num_speculative_tokens = 4};
  options.speculation->per_batch_size = {{1, 6, 4}};
  return options;
}

// Options for a model with sliding windows, whose head has separate block tables.
EngineOptions beside_windows() {
  EngineOptions options = with_head(HeadOptions::Kind::eagle, "markov", "markov-eagle");
  options.model.hf_overrides = R"({"architectures": ["MinistralForCausalLM"], "sliding_window": 8,
                             "layer_types": ["sliding_attention", "full_attention"]})";
  return options;
}

TEST(Speculation, AnswersWithHeadsAreThoseWithoutDrafts) {
  using enum HeadOptions::Kind;
  const EngineOptions heads[] = {with_head(mtp, "deepseek_v3", ""),
                                 with_head(mtp, "glm4_moe", ""),
                                 with_head(mtp, "mimo", "mimo"),
                                 with_head(eagle, "llama", "eagle"),
                                 with_head(mtp, "qwen3_next", ""),
                                 with_head(mtp, "qwen3_5_moe", ""),
                                 with_head(mtp, "ernie4_5_moe", ""),
                                 with_head(eagle3, "llama", "eagle3-layers"),
                                 with_head(eagle3, "llama", "eagle3"),
                                 with_head(eagle3, "llama", "eagle3-speculators"),
                                 with_head(eagle, "markov", "markov-eagle"),
                                 beside_windows()};
  struct Variation {
    const char* name;
    int tokens = 256;
    std::optional<int> blocks = {};
    bool prefix_caching = true;
    bool drawn = true;
  };
  const Variation variations[] = {{"drawn"},
                                  {.name = "greedy", .drawn = false},
                                  {"small steps", 16},
                                  {"preempted", 48, 9},
                                  {"no prefix cache", 64, {}, false}};
  for (const EngineOptions& head : heads) {
    SCOPED_TRACE(head.model.dir);
    EngineOptions none = head;
    none.speculation.reset();
    const std::vector<CollectedAnswer> plain = answers_of(*load_engine(none).value(), kDraftRequests);
    for (const Variation& v : variations) {
      EngineOptions options = head;
      std::get<HeadOptions>(options.speculation->method).drawn = v.drawn;
      options.schedule.max_num_batched_tokens = v.tokens;
      options.cache.num_blocks = v.blocks;
      if (v.blocks && !head.model.hf_overrides.empty()) options.cache.num_blocks = 2 * *v.blocks;
      options.cache.enable_prefix_caching = v.prefix_caching;
      const auto engine = load_engine(options).value();
      for (int round = 0; round < 2; ++round)
        EXPECT_EQ(answers_of(*engine, kDraftRequests), plain) << v.name << ", round " << round;
      EXPECT_GT(engine->own_stats().drafts.tokens, 0) << v.name;
      if (head.model.dir.ends_with("markov")) {
        EXPECT_GT(accepted(*engine), 0) << v.name;
        EXPECT_LT(accepted(*engine), engine->own_stats().drafts.tokens) << v.name;
      }
    }
  }
}

// Blocks that are loaded from a tier or another engine lack the keys and values of the head.
TEST(Speculation, HeadsDraftAfterPrefixesThatWereLoaded) {
  using enum HeadOptions::Kind;
  for (EngineOptions options :
       {with_head(eagle, "markov", "markov-eagle"), with_head(eagle3, "llama", "eagle3"),
        with_head(mtp, "deepseek_v3", ""), with_head(mtp, "mimo", "mimo")}) {
    SCOPED_TRACE(options.model.dir);
    EngineOptions none = options;
    none.speculation.reset();
    const std::vector<CollectedAnswer> plain = answers_of(*load_engine(none).value(), kDraftRequests);
    options.kv_transfer = host_options(std::int64_t{1} << 22);
    const auto engine = load_engine(options).value();
    for (int round = 0; round < 3; ++round) {
      const std::int64_t before = engine->own_stats().drafts.tokens,
                         hits = engine->own_stats().kv_transfer.hits;
      EXPECT_EQ(answers_of(*engine, kDraftRequests), plain) << "round " << round;
      EXPECT_GT(engine->own_stats().drafts.tokens, before) << "round " << round;
      EXPECT_TRUE(round == 0 || engine->own_stats().kv_transfer.hits > hits) << "round " << round;
      EXPECT_TRUE(
          eventually([&] { return engine->own_stats().kv_host_tier.stored_blocks > 0 && at_rest(*engine); }));
      engine->reset_prefix_cache();
    }
    if (options.model.dir.ends_with("markov")) {
      EXPECT_GT(accepted(*engine), 0);
    }
  }
}

// Penalties, bans and minimum lengths of a row include the draft tokens before the row.
TEST(Speculation, RequestsWithPenaltiesAndBansGetDrafts) {
  using enum HeadOptions::Kind;
  EngineOptions options = with_head(eagle, "markov", "markov-eagle");
  EngineOptions none = options;
  none.speculation.reset();
  const auto plain = load_engine(none).value();
  const auto drafting = load_engine(options).value();
  const int vocab = plain->info().vocab_size;
  const auto with = [&](const std::function<void(SamplingParams&)>& change) {
    std::vector<Request> requests;
    for (int i = 0; i < kDraftRequests; ++i) {
      Request request = request_of(i, vocab);
      request.sampling.penalties.presence = 0;
      request.sampling.ignore_eos = false;
      request.eos_ids = {3, 5, 7};
      change(request.sampling);
      requests.push_back(std::move(request));
    }
    return requests;
  };
  const std::pair<const char*, std::function<void(SamplingParams&)>> kinds[] = {
      {"repetition", [](SamplingParams& p) { p.penalties.repetition = 1.3; }},
      {"frequency and presence",
       [](SamplingParams& p) { p.penalties.frequency = 0.4, p.penalties.presence = 0.6; }},
      {"min_tokens", [](SamplingParams& p) { p.min_tokens = 4; }},
      {"bad words", [](SamplingParams& p) { p.tokens.bad_word_ids = {{1, 2}, {2, 3, 4}, {9}}; }}};
  for (const auto& [name, change] : kinds) {
    const std::int64_t before = drafting->own_stats().drafts.tokens;
    EXPECT_EQ(answers_to(*drafting, with(change)), answers_to(*plain, with(change))) << name;
    EXPECT_GT(drafting->own_stats().drafts.tokens, before) << name;
  }
  EXPECT_GT(accepted(*drafting), 0);
}

TEST(Speculation, AnswersWithHeadsByPositionAreThoseWithoutDrafts) {
  using enum PositionHeadOptions::Kind;
  struct Case {
    const char* target;
    const char* heads;
    PositionHeadOptions::Kind kind;
  };
  const Case cases[] = {{"markov", "markov-medusa", medusa},
                        {"markov", "markov-mlp", mlp_speculator},
                        {"llama", "medusa-token-map", medusa},
                        {"llama", "mlp-speculator", mlp_speculator}};
  struct Variation {
    const char* name;
    int tokens = 256;
    std::optional<int> blocks = {};
    bool drawn = true;
  };
  const Variation variations[] = {
      {"drawn"}, {.name = "greedy", .drawn = false}, {"small steps", 16}, {"preempted", 48, 9}};
  for (const auto& [target, heads, kind] : cases) {
    SCOPED_TRACE(heads);
    EngineOptions none = demo();
    none.model.dir = std::string(kDrafters) + target;
    none.cache.memory_bytes = 4 << 20;
    const std::vector<CollectedAnswer> plain = answers_of(*load_engine(none).value(), kDraftRequests);
    for (const Variation& v : variations) {
      EngineOptions options = none;
      options.speculation = SpeculativeOptions{
          .method =
              PositionHeadOptions{.kind = kind, .model = std::string(kDrafters) + heads, .drawn = v.drawn},
          .num_speculative_tokens = 3};
      options.speculation->per_batch_size = {{1, 6, 3}};
      options.schedule.max_num_batched_tokens = v.tokens;
      options.cache.num_blocks = v.blocks;
      const auto engine = load_engine(options).value();
      for (int round = 0; round < 2; ++round)
        EXPECT_EQ(answers_of(*engine, kDraftRequests), plain) << v.name << ", round " << round;
      EXPECT_GT(engine->own_stats().drafts.tokens, 0) << v.name;
      if (std::string_view(target) == "markov") {
        EXPECT_GT(accepted(*engine), 0) << v.name;
      }
    }
  }
}

// The draft tokens of a head depend neither on the chunks of a prompt nor on the source of its KV blocks.
// So the number of accepted draft tokens is always the same.
TEST(Speculation, WhatAHeadDraftsDependsOnTheTextAlone) {
  std::vector<std::int64_t> counts;
  for (const int tokens : {256, 16}) {
    EngineOptions options = with_head(HeadOptions::Kind::eagle, "markov", "markov-eagle");
    options.schedule.max_num_batched_tokens = tokens;
    options.schedule.max_num_seqs = 1;
    const auto engine = load_engine(options).value();
    answers_of(*engine, kDraftRequests);
    counts.push_back(accepted(*engine));
    counts.push_back(drafts_of(*engine).tokens);
  }
  EXPECT_GT(counts[0], 0);
  EXPECT_EQ(counts[0], counts[2]);
  EXPECT_EQ(counts[1], counts[3]);
}

// An asynchronous device gives the same results as the CPU. Requests run one at a time, so that step times
// do not affect the number of draft tokens.
TEST(Speculation, OnADeviceHeadsDraftWhatTheyDoOnTheCpu) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  EngineOptions options = with_head(HeadOptions::Kind::eagle, "markov", "markov-eagle");
  options.model.dtype = "float32";
  options.schedule.max_num_seqs = 1;
  options.schedule.max_num_batched_tokens = 24;
  const auto counts = [&](const char* device, bool eager) {
    options.device.type = device;
    options.device.enforce_eager = eager;
    const auto engine = load_engine(options).value();
    answers_of(*engine, 3);
    return std::pair(accepted(*engine), drafts_of(*engine).tokens);
  };
  const auto on_cpu = counts("cpu", false);
  EXPECT_GT(on_cpu.first, 0);
  EXPECT_EQ(counts("cuda", false), on_cpu);
  EXPECT_EQ(counts("cuda", true), on_cpu);
}

TEST(Speculation, OnADeviceAnswersAreThoseWithoutDrafts) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  constexpr int kFew = 3;  // the emulated device is slow
  EngineOptions options = demo();
  options.model.dir = "tests/data/models/llama";
  options.device.type = "cuda";
  options.cache.memory_bytes = 1 << 20;
  options.schedule.max_num_batched_tokens = 48;
  const std::vector<CollectedAnswer> plain = answers_of(*load_engine(options).value(), kFew);
  options.speculation = with_draft("tests/data/models/llama");
  for (const bool eager : {false, true}) {
    if (eager && !long_tests()) continue;
    options.device.enforce_eager = eager;
    const auto engine = load_engine(options).value();
    EXPECT_EQ(answers_of(*engine, kFew), plain) << eager;
    EXPECT_GT(accepted(*engine), 0) << eager;
  }
}

TEST(Speculation, OnADeviceAnswersWithHeadsAreThoseOfTheCpu) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  constexpr int kFew = 3;
  using enum PositionHeadOptions::Kind;
  EngineOptions cases[] = {with_head(HeadOptions::Kind::eagle, "markov", "markov-eagle"),
                           with_head(HeadOptions::Kind::mtp, "mimo", "mimo"),
                           with_head(HeadOptions::Kind::eagle, "markov", "")};
  cases[2].speculation = SpeculativeOptions{
      .method = PositionHeadOptions{.kind = medusa, .model = std::string(kDrafters) + "markov-medusa"},
      .num_speculative_tokens = 3};
  bool turn = false;  // alternates between CUDA graphs and direct steps
  for (EngineOptions& options : cases) {
    SCOPED_TRACE(options.model.dir);
    turn = !turn;
    options.model.dtype = "float32";
    options.device.type = "cpu";
    const auto on_cpu = load_engine(options).value();
    const std::vector<CollectedAnswer> expected = answers_of(*on_cpu, kFew);
    options.device.type = "cuda";
    for (const bool eager : {false, true}) {
      if (eager == turn && !long_tests()) continue;
      options.device.enforce_eager = eager;
      const auto engine = load_engine(options).value();
      const std::vector<CollectedAnswer> got = answers_of(*engine, kFew);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
      EXPECT_GT(engine->own_stats().drafts.tokens, 0) << eager;
    }
  }
}

// The target model is also the draft model, so it proposes its own output, greedy or sampled.
TEST(Speculation, DraftsAreDrawnAsAnswersAre) {
  EngineOptions options = demo();
  options.speculation = with_draft("models/demo");
  const auto engine = load_engine(options).value();
  answers_of(*engine, kDraftRequests);
  const EngineStats stats = engine->own_stats();
  EXPECT_GT(accepted(*engine), 0);
  // The two models compute batches of different sizes, so a few draft tokens may differ. Draft tokens after
  // the end of an output are not used.
  EXPECT_GE(accepted(*engine), stats.drafts.tokens * 9 / 10);
}

TEST(Speculation, TheCacheOfTheDraftModelIsPartOfTheMemory) {
  EngineOptions options = demo();
  const auto plain = load_engine(options).value();
  options.speculation = with_draft("models/demo-draft");
  const auto drafting = load_engine(options).value();
  EXPECT_LE(drafting->info().cache.bytes, options.cache.memory_bytes);
  EXPECT_GT(drafting->info().cache.bytes, options.cache.memory_bytes * 9 / 10);
  EXPECT_LT(drafting->info().num_blocks, plain->info().num_blocks);
  EXPECT_GT(drafting->info().weight_bytes, plain->info().weight_bytes);
}

TEST(Speculation, WhatCannotDraftIsRefused) {
  const auto error = [](EngineOptions options) {
    const auto loaded = load_engine(options);
    return loaded ? "" : fmt::format("{}: {}", loaded.error().field, loaded.error().message);
  };
  using testing::HasSubstr;
  EngineOptions options = demo();
  options.speculation = with_draft("tests/data/models/llama");
  EXPECT_THAT(error(options), HasSubstr("speculative_config: the draft model has a vocabulary of "));
  options.speculation = with_draft("tests/data/sound/whisper");
  EXPECT_THAT(error(options),
              HasSubstr("has cross attention, but draft tokens are computed without encoder outputs"));
  options.speculation = with_draft("tests/data/models/nothing");
  EXPECT_THAT(error(options), HasSubstr("the draft model: "));
  options.device.executor = "simulated";
  EXPECT_THAT(error(options), HasSubstr("is not supported with a simulated executor"));
  options = demo();
  options.speculation = SpeculativeOptions{.method = HeadOptions{}};
  EXPECT_THAT(error(options), HasSubstr("Qwen3ForCausalLM has no layers for multi-token prediction"));
  options = demo();
  options.model.dir = std::string(kDrafters) + "llama";
  options.speculation = SpeculativeOptions{
      .method = PositionHeadOptions{.model = std::string(kDrafters) + "medusa"}, .num_speculative_tokens = 4};
  EXPECT_THAT(error(options),
              HasSubstr("num_speculative_tokens: must be at most 3, which is the number of heads of "));
  options = with_head(HeadOptions::Kind::eagle, "llama", "eagle");
  options.model.dir = "tests/data/models/mistral";
  EXPECT_THAT(error(options),
              HasSubstr("MistralForCausalLM has none: set --disable-hybrid-kv-cache-manager"));
  options = demo();
  options.model.dir = "models/demo-draft";
  options.model.runner = "pooling";
  options.speculation = SpeculativeOptions{};
  EXPECT_THAT(error(options), HasSubstr("speculative_config: "));
}

}  // namespace
}  // namespace octavo
