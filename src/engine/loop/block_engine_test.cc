// Tests engines of models with features that no other engine test has: all expert routers, sinks, sliding
// windows, chunked attention, ALiBi, indexers, values that are narrower than keys, residuals that skip
// layers, and layers that share KV. An output depends only on its request.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/testing/variations.h"

namespace octavo {
namespace {

constexpr int kBlockRequests = 7;

class BlockEngine : public testing::TestWithParam<const char*> {
 protected:
  BlockEngine() {
    options_.model.dir = std::string("tests/data/models/") + GetParam();
    options_.device.type = "cpu";
    options_.schedule.max_num_batched_tokens = 256;
    options_.schedule.max_num_seqs = 6;
    options_.cache.memory_bytes = 4 << 20;
  }
  EngineOptions options_;
};

std::string model_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, BlockEngine,
                         testing::Values("qwen3_moe", "qwen2_moe", "phimoe", "glm4_moe", "gpt_oss", "gemma3",
                                         "llama4", "bloom", "mimo_v2_flash", "deepseek_v32",
                                         "glm_moe_dsa-shared", "step3", "step3p5", "granite_swa",
                                         "longcat_flash", "solar", "gemma3n", "gemma4"),
                         model_name);

TEST_P(BlockEngine, AnAnswerDependsOnItsRequestAlone) {
  const Variation variations[] = {{"together", 1, 256, 6},
                                  {"threads", 3, 256, 6},
                                  {"chunks", 2, 7, 6},
                                  {"draft tokens", 2, 256, 6, {}, true},
                                  {"preempted", 2, 48, 6, few_blocks(options_.model.dir)}};
  expect_the_same_answers(options_, kBlockRequests, std::span(variations).first(4));
  options_.cache.sliding_window_groups = false;  // all groups keep the blocks of all tokens
  expect_the_same_answers(options_, kBlockRequests, std::span(variations).last(1));
}

TEST_P(BlockEngine, PrefixesAreShared) { expect_shared_prefixes(options_, kBlockRequests); }

}  // namespace
}  // namespace octavo
