// Engines of models whose last layers read the keys and values of others, with vectors of each token for each
// layer and, in Gemma 3n, several residuals: an answer depends on its request alone.
#include <gtest/gtest.h>

#include "engine/test_variations.h"

namespace octavo {
namespace {

constexpr int kRequests = 6;

class SharedCacheEngine : public testing::TestWithParam<const char*> {
 protected:
  SharedCacheEngine() {
    options_.model_dir = std::string("tests/data/models/") + GetParam();
    options_.device = "cpu";
    options_.max_num_batched_tokens = 256;
    options_.max_num_seqs = 6;
    options_.kv_cache_memory_bytes = 4 << 20;
  }
  EngineOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Models, SharedCacheEngine, testing::Values("gemma3n", "gemma4"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(SharedCacheEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {{"together", 1, 256, 6},
                                  {"threads", 3, 256, 6},
                                  {"chunks", 2, 7, 6},
                                  {"preempted", 2, 48, 6, 12},
                                  {"drafts", 2, 256, 6, {}, true}};
  expect_the_same_answers(options_, kRequests, variations);
}

TEST_P(SharedCacheEngine, PrefixesAreShared) {
  const auto engine = load_engine(options_).value();
  const auto cold = answers_of(*engine, kRequests);
  const auto hits = engine->own_stats().prefix_hits;
  EXPECT_EQ(answers_of(*engine, kRequests), cold);
  EXPECT_GT(engine->own_stats().prefix_hits, hits);
}

}  // namespace
}  // namespace octavo
