// Engines of models with recurrent layers: an answer depends on its request alone, whatever becomes of the
// slots of states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_variations.h"

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

INSTANTIATE_TEST_SUITE_P(Models, HybridEngine, testing::Values("qwen3_next", "qwen3_5"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HybridEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {
      {"together", 1, 256, 6}, {"threads", 3, 256, 6}, {"chunks", 2, 7, 6}, {"preempted", 2, 48, 6, 5}};
  expect_the_same_answers(options_, kRequests, variations);
}

TEST_P(HybridEngine, PrefixesAreNotShared) {
  const auto engine = load_engine(options_).value();
  answers_of(*engine, kRequests);
  answers_of(*engine, kRequests);
  EXPECT_EQ(engine->own_stats().prefix_hits, 0);
}

TEST_P(HybridEngine, StatesHaveTheirShareOfTheMemory) {
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
