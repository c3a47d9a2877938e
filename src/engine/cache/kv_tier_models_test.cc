// Tests real models with cache tiers in host memory and on a disk.
#include <gtest/gtest.h>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "engine/testing/tier_rig.h"

namespace octavo {
namespace {

// Tokens and logprobs have the same bits whether the blocks are computed, or loaded from host memory or
// disk. The pools are small, so that sequences are preempted.
struct TieredModel {
  std::string model, dtype;
  std::int64_t host_bytes = 0;
  bool disk = true;
};
class KvTierOfModels : public testing::TestWithParam<TieredModel> {};

TEST_P(KvTierOfModels, AnswersAreThoseWithoutItToTheBit) {
  const ScratchDirectory folder;
  KvTransferOptions transfer = tier_options(folder);
  transfer.tier->host_bytes = GetParam().host_bytes;
  if (!GetParam().disk) transfer.tier->path_or_url.clear();
  EngineOptions plain;
  plain.model.dir = "tests/data/models/" + GetParam().model;
  plain.device.type = "cpu";
  plain.device.threads = 2;
  plain.cache.num_blocks = 40;
  plain.model.max_model_len = 160;
  plain.cache.dtype = GetParam().dtype;
  constexpr int kRequests = 10;
  const std::vector<CollectedAnswer> wanted = answers_of(*load_engine(plain).value(), kRequests);
  for (const int blocks : {40, 12, 40}) {
    EngineOptions tiered = plain;
    tiered.cache.num_blocks = blocks;
    tiered.kv_transfer = transfer;
    const auto engine = load_engine(tiered).value();
    for (int round = 0; round < 3; ++round) {
      EXPECT_TRUE(answers_of(*engine, kRequests) == wanted) << blocks << " blocks, round " << round;
      if (round != 1) continue;
      // Waits until the tiers have stored the blocks, because the cache evicts the blocks next.
      EXPECT_TRUE(eventually([&] {
        const EngineStats stats = engine->own_stats();
        const std::int64_t stored = stats.kv_tier.stored_blocks + stats.kv_host_tier.stored_blocks;
        return (stored > 0 || stats.kv_transfer.hits > 0) && at_rest(*engine);
      }));
      engine->reset_prefix_cache();
    }
    // Repeats until blocks are loaded, because the engine does not load if computing seems faster.
    EXPECT_TRUE(eventually([&] {
      if (engine->own_stats().kv_transfer.hits > 0) return at_rest(*engine);
      engine->reset_prefix_cache();
      EXPECT_TRUE(answers_of(*engine, kRequests) == wanted) << blocks << " blocks, once more";
      return false;
    }));
    EXPECT_EQ(engine->own_stats().kv_tier.off, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KvTierOfModels,
                         testing::Values(TieredModel{"llama", "auto"}, TieredModel{"llama", "fp8"},
                                         TieredModel{"qwen3", "int8_per_token_head"},
                                         TieredModel{"qwen3", "int4_per_token_head"},
                                         TieredModel{"llama", "auto", 1 << 20, false},
                                         TieredModel{"qwen3", "auto", 1 << 17}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}{}", test.param.model, test.param.dtype,
                                              test.param.host_bytes, test.param.disk ? "_disk" : "");
                         });

// Blocks of sliding-window groups and states of recurrent layers can be loaded, too.
class KvTierOfParts : public testing::TestWithParam<const char*> {};

TEST_P(KvTierOfParts, AnswersAreThoseWithoutItToTheBit) {
  EngineOptions options;
  options.model.dir = std::string("tests/data/models/") + GetParam();
  options.device.type = "cpu";
  options.device.threads = 2;
  options.cache.memory_bytes = 4 << 20;
  options.model.max_model_len = 160;
  options.schedule.max_num_seqs = 8;
  options.cache.mamba_block_size = 64;
  const std::vector<CollectedAnswer> wanted = answers_of(*load_engine(options).value(), 10);
  options.kv_transfer = host_options(4 << 20);
  const auto engine = load_engine(options).value();
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(answers_of(*engine, 10) == wanted) << "round " << round;
    EXPECT_TRUE(
        eventually([&] { return engine->own_stats().kv_host_tier.stored_blocks > 0 && at_rest(*engine); }));
    engine->reset_prefix_cache();
  }
  EXPECT_GT(engine->own_stats().kv_transfer.hits, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, KvTierOfParts, testing::Values("gemma3", "qwen3_next"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace octavo
