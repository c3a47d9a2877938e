// Engines of models with recurrent layers: an answer depends on its request alone, whatever becomes of the
// slots of states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/test_variations.h"
#include "model/cache_layout.h"
#include "model/model.h"

namespace octavo {
namespace {

constexpr int kRequests = 7;

class HybridEngine : public testing::TestWithParam<const char*> {
 protected:
  HybridEngine() {
    options_.model_dir = std::string("tests/data/models/") + GetParam();
    options_.device = "cpu";
    options_.max_num_batched_tokens = 256;
    options_.max_num_seqs = 6;
    options_.kv_cache_memory_bytes = 1 << 20;
  }
  EngineOptions options_;
};

std::string model_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

// Mamba and Mamba2 have no layer with attention.
INSTANTIATE_TEST_SUITE_P(Models, HybridEngine,
                         testing::Values("qwen3_next", "qwen3_5", "lfm2", "granite_moe_hybrid",
                                         "nemotron_h-moe", "falcon_h1", "jamba", "mamba", "mamba2"),
                         model_name);

class HybridMemory : public HybridEngine {};

INSTANTIATE_TEST_SUITE_P(Models, HybridMemory, testing::Values("qwen3_next", "qwen3_5"), model_name);

TEST_P(HybridEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {
      {"together", 1, 256, 6}, {"threads", 3, 256, 6}, {"chunks", 2, 7, 6}, {"preempted", 2, 48, 6, 5}};
  // Without attention nothing grows, and nobody gives way.
  const bool attends = cache_layout(load_spec(options_.model_dir).value(), {}).planes > 0;
  expect_the_same_answers(options_, kRequests, std::span(variations).first(attends ? 4 : 3));
}

TEST_P(HybridEngine, PrefixesAreNotShared) {
  const auto engine = load_engine(options_).value();
  answers_of(*engine, kRequests);
  answers_of(*engine, kRequests);
  EXPECT_EQ(engine->own_stats().prefix_hits, 0);
}

TEST_P(HybridMemory, StatesHaveTheirShareOfTheMemory) {
  EXPECT_EQ(load_engine(options_).value()->info().max_num_seqs, 6);
  options_.kv_cache_memory_bytes = 60'000;
  const auto few = load_engine(options_).value();
  EXPECT_LT(few->info().max_num_seqs, 6);
  EXPECT_GE(few->info().max_num_seqs, 1);
  EXPECT_LE(few->info().cache_bytes, 60'000);
  options_.kv_cache_memory_bytes = 10'000;
  const auto none = load_engine(options_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "kv_cache_memory_bytes");
}

TEST_P(HybridEngine, GuessesAreRefused) {
  options_.speculation = SpeculativeOptions{};
  const auto loaded = load_engine(options_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().field, "speculative_config");
  EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
