// Tests engines of models with recurrent layers. An output depends only on its request, for any use of the
// state slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/testing/variations.h"

namespace octavo {
namespace {

constexpr int kHybridRequests = 7;

class HybridEngine : public testing::TestWithParam<const char*> {
 protected:
  HybridEngine() {
    options_.model.dir = std::string("tests/data/models/") + GetParam();
    options_.device.type = "cpu";
    options_.schedule.max_num_batched_tokens = 256;
    options_.schedule.max_num_seqs = 6;
    options_.cache.memory_bytes = 4 << 20;
    options_.cache.mamba_block_size = 16;
  }
  std::optional<int> few_blocks() const { return octavo::few_blocks(options_.model.dir); }
  EngineOptions options_;
};

std::string hybrid_model_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

// Mamba and Mamba2 have no attention layers.
INSTANTIATE_TEST_SUITE_P(Models, HybridEngine,
                         testing::Values("qwen3_next", "qwen3_5", "lfm2", "granite_moe_hybrid",
                                         "nemotron_h-moe", "falcon_h1", "jamba", "mamba", "mamba2",
                                         "falcon_mamba", "kimi_linear", "minimax", "rwkv7", "deepseek_v4",
                                         "olmo_hybrid", "bailing-v2_5", "zamba2"),
                         hybrid_model_name);

class HybridMemory : public HybridEngine {};

INSTANTIATE_TEST_SUITE_P(Models, HybridMemory, testing::Values("qwen3_next", "qwen3_5"), hybrid_model_name);

TEST_P(HybridEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {{"together", 1, 256, 6},
                                  {"threads", 3, 256, 6},
                                  {"chunks", 2, 7, 6},
                                  {"preempted", 2, 48, 6, few_blocks()}};
  expect_the_same_answers(options_, kHybridRequests, std::span(variations).first(3));
  if (!few_blocks()) return;
  options_.cache.sliding_window_groups = false;  // all groups keep the blocks of all tokens
  expect_the_same_answers(options_, kHybridRequests, std::span(variations).last(1));
}

// Outputs are equal with saved states, with too few state slots, and without saved states.
TEST_P(HybridEngine, PrefixesAreShared) {
  options_.cache.enable_prefix_caching = false;
  const auto without = load_engine(options_).value();
  const std::vector<CollectedAnswer> answers = answers_of(*without, kHybridRequests);
  answers_of(*without, kHybridRequests);
  EXPECT_EQ(without->own_stats().prefix_cache.hits, 0);
  options_.cache.enable_prefix_caching = true;
  for (const int interval : {16, 32}) {
    options_.cache.mamba_block_size = interval;
    const auto engine = load_engine(options_).value();
    EXPECT_EQ(answers_of(*engine, kHybridRequests), answers);
    const std::int64_t before = engine->own_stats().prefix_cache.hits;
    EXPECT_EQ(answers_of(*engine, kHybridRequests), answers);
    // States are saved at multiples of the interval, so each prompt finds its tokens up to the last multiple.
    std::int64_t found = 0;
    for (int i = 0; i < kHybridRequests; ++i) {
      const auto length = static_cast<int>(request_of(i, 100).prompt.size());
      if (!request_of(i, 100).sampling.logprobs.prompt) found += (length - 1) / interval * interval;
    }
    EXPECT_GE(engine->own_stats().prefix_cache.hits - before, found) << interval;
    engine->reset_prefix_cache();
    EXPECT_EQ(answers_of(*engine, kHybridRequests), answers);
  }
}

TEST_P(HybridMemory, StatesHaveTheirShareOfTheMemory) {
  EXPECT_EQ(load_engine(options_).value()->info().max_num_seqs, 6);
  options_.cache.memory_bytes = 60'000;
  const auto few = load_engine(options_).value();
  EXPECT_LT(few->info().max_num_seqs, 6);
  EXPECT_GE(few->info().max_num_seqs, 1);
  EXPECT_LE(few->info().cache.bytes, 60'000);
  options_.cache.memory_bytes = 10'000;
  const auto none = load_engine(options_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "kv_cache_memory_bytes");
}

// After a rejected draft token, states return to an earlier value. The variations have saved states of
// prefixes, few blocks (so that sequences are preempted), or few states.
TEST_P(HybridEngine, AnswersAreThoseWithoutDrafts) {
  const std::vector<CollectedAnswer> plain = answers_of(*load_engine(options_).value(), kHybridRequests);
  struct Variation {
    const char* name;
    int tokens = 256;
    bool prefix_caching = true;
    bool preempts = false;
    std::vector<TokensPerBatchSize> drafts = {{1, 6, 4}};
    decltype(SpeculativeOptions::method) method = SuffixOptions{};
  };
  const Variation variations[] = {
      {"kept states"},
      {"no prefix cache", 16, false},
      {"preempted", 48, true, true},
      {.name = "few states", .drafts = {{1, 1, 1}, {2, 6, 0}}},
      {.name = "often wrong", .method = NgramOptions{1, 1}},
      {.name = "often wrong, preempted", .tokens = 48, .preempts = true, .method = NgramOptions{1, 1}}};
  std::int64_t all_drafts = 0, all_accepted = 0;
  for (const Variation& v : variations) {
    options_.speculation = SpeculativeOptions{.method = v.method, .num_speculative_tokens = 4};
    options_.speculation->per_batch_size = v.drafts;
    options_.schedule.max_num_batched_tokens = v.tokens;
    options_.cache.enable_prefix_caching = v.prefix_caching;
    options_.cache.num_blocks = v.preempts ? few_blocks() : std::nullopt;
    const auto engine = load_engine(options_).value();
    for (int round = 0; round < 3; ++round)  // draft tokens come from past outputs
      EXPECT_EQ(answers_of(*engine, kHybridRequests), plain) << v.name << ", round " << round;
    const EngineStats stats = engine->own_stats();
    const std::int64_t accepted =
        std::accumulate(stats.drafts.accepted.begin(), stats.drafts.accepted.end(), std::int64_t{0});
    if (std::holds_alternative<SuffixOptions>(v.method)) {
      EXPECT_GT(accepted, 0) << v.name;
    }
    all_drafts += stats.drafts.tokens;
    all_accepted += accepted;
  }
  EXPECT_LT(all_accepted, all_drafts);
}

}  // namespace
}  // namespace octavo
