// Tests engines of models with latent attention (MLA). An output depends only on its request, even if
// requests share cached latents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/variations.h"

namespace octavo {
namespace {

constexpr int kLatentRequests = 7;

class LatentEngine : public testing::TestWithParam<const char*> {
 protected:
  LatentEngine() {
    options_.model.dir = "tests/data/models/deepseek_v3";
    options_.device.type = "cpu";
    options_.cache.dtype = GetParam();
    options_.schedule.max_num_batched_tokens = 256;
    options_.schedule.max_num_seqs = 6;
    options_.cache.memory_bytes = 1 << 20;
  }
  EngineOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Caches, LatentEngine, testing::Values("auto", "fp8", "int8_per_token_head"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(LatentEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {{"together", 1, 256, 6},
                                  {"threads", 3, 256, 6},
                                  {"chunks", 2, 7, 6},
                                  {"preempted", 2, 48, 6, 5},
                                  {"draft tokens", 2, 256, 6, {}, true}};
  expect_the_same_answers(options_, kLatentRequests, variations);
}

TEST(LatentEngineOptions, FourBitsAreRefused) {
  EngineOptions options;
  options.model.dir = "tests/data/models/deepseek_v3";
  options.device.type = "cpu";
  options.cache.dtype = "int4_per_token_head";
  const auto engine = load_engine(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().field, "kv_cache_dtype");
  EXPECT_THAT(engine.error().message, testing::HasSubstr("latent attention"));
}

TEST_P(LatentEngine, PrefixesAreShared) { expect_shared_prefixes(options_, kLatentRequests); }

}  // namespace
}  // namespace octavo
