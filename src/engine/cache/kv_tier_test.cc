// Tests an engine with cache tiers in host memory and on a disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "engine/testing/tier_rig.h"
#include "transfer/testing/redis.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

class KvTierModes : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, KvTierModes, EngineModes::all(), EngineModes::name);

TEST_P(KvTierModes, AForgottenPromptComesBackFromTheDisk) {
  const ScratchDirectory folder;
  TierRig rig({.mode = GetParam(), .kv_transfer = tier_options(folder)});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  EXPECT_EQ(rig.cached(prompt), 0);
  EXPECT_EQ(rig.cached(prompt), 96) << "from memory";
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 96);
  rig.rest();
  EXPECT_EQ(rig.engine->own_stats().kv_transfer.hits, 96);
  EXPECT_EQ(rig.engine->own_stats().kv_transfer.queries, 96);
  const auto disk = static_cast<std::size_t>(KvSource::disk);
  EXPECT_EQ(rig.engine->own_stats().kv_transfer.used_by_source[disk], 96) << "the device's 96 are not loaded";
  EXPECT_EQ(rig.tier().stored_blocks, 6);
  rig.expect_empty();
}

TEST_P(KvTierModes, AForgottenPromptComesBackFromHostMemory) {
  TierRig rig({.mode = GetParam(), .kv_transfer = host_options(6 * 64)});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  EXPECT_EQ(rig.cached(prompt), 0);
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 96);
  rig.forget();
  const KvTierStats host = rig.engine->own_stats().kv_host_tier;
  EXPECT_EQ(host.stored_blocks, 6);
  EXPECT_EQ(host.loaded_bytes, 6 * 64);
  EXPECT_FALSE(rig.tier().enabled);
  rig.ask(some_prompt(2, 100), 3);  // evicts the first prompt
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 0);
  rig.rest();
  EXPECT_EQ(rig.engine->own_stats().kv_host_tier.blocks, 6);
  rig.expect_empty();
}

TEST_P(KvTierModes, WhatHostMemoryHasNoRoomForComesBackFromTheDisk) {
  const ScratchDirectory folder;
  KvTransferOptions both = tier_options(folder);
  both.tier->host_bytes = 6 * 64;
  TierRig rig({.mode = GetParam(), .kv_transfer = both});
  const auto written = [&](std::int64_t blocks) {
    return eventually([&] { return rig.tier().stored_blocks >= blocks; });
  };
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  rig.ask(prompt, 3);
  EXPECT_TRUE(written(6));
  rig.rest();  // otherwise the queue of stores, which can hold one prompt, could drop the next prompt
  rig.ask(some_prompt(2, 100), 3);  // evicts the first prompt from host memory
  EXPECT_TRUE(written(12));
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 96);
  rig.rest();
  EXPECT_EQ(rig.tier().loaded_bytes, 6 * 64);
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 96) << "from host memory again";
  rig.rest();
  EXPECT_EQ(rig.tier().loaded_bytes, 6 * 64);
  EXPECT_EQ(rig.engine->own_stats().kv_host_tier.loaded_bytes, 12 * 64);
  rig.expect_empty();
}

class KvTierPools : public testing::TestWithParam<std::tuple<Mode, const char*>> {};

TEST_P(KvTierPools, ManyPromptsOnTightPoolsGetTheirOwnTokens) {
  const ScratchDirectory folder;
  const std::string_view tiers = std::get<1>(GetParam());
  KvTransferOptions transfer =
      // A block has 64 bytes. On disk, it also has a header of 64 bytes.
      tiers == "host" ? host_options(60 * 64) : tier_options(folder, 60 * 128);
  if (tiers == "both") transfer.tier->host_bytes = 20 * 64;
  const octavo::Setup setup{.num_blocks = 24,
                            .max_tokens = 48,
                            .max_model_len = 320,
                            .mode = std::get<0>(GetParam()),
                            .kv_transfer = transfer};
  std::mt19937 random(11);
  for (int life = 0; life < 3; ++life) {
    TierRig rig(setup);
    std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
    for (int i = 0; i < 60; ++i) {
      // Many prompts share a few prefixes.
      std::vector<TokenId> prompt = some_prompt(random() % 4, 20 + static_cast<int>(random() % 150));
      const std::vector<TokenId> end = some_prompt(static_cast<unsigned>(i), static_cast<int>(random() % 30));
      prompt.insert(prompt.end(), end.begin(), end.end());
      const int count = 1 + static_cast<int>(random() % 90);
      const std::vector<TokenId> tokens = expected(prompt, count);
      rig.learn(prompt, tokens);
      auto sink = std::make_shared<Recorder>();
      const auto id = rig.engine->submit(request_for(std::move(prompt), count), sink);
      ASSERT_TRUE(id);
      if (i % 7 == 3) {
        rig.engine->abort(*id);
      } else {
        all.emplace_back(sink, tokens);
      }
      if (i % 20 == 10) rig.engine->reset_prefix_cache();
    }
    for (const auto& [sink, tokens] : all) {
      sink->wait_ended(1);
      EXPECT_EQ(sink->record().tokens, tokens);
    }
    rig.rest();
    EXPECT_LE(rig.tier().blocks, 60);
    const EngineStats stats = rig.engine->own_stats();
    EXPECT_LE(stats.kv_host_tier.blocks, 60);
    const auto& used = stats.kv_transfer.used_by_source;
    EXPECT_LE(std::accumulate(used.begin(), used.end(), std::int64_t{0}),
              std::min(stats.kv_transfer.hits, stats.tokens.prompt_cached));
    rig.expect_empty();
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, KvTierPools,
                         testing::Combine(EngineModes::all(), testing::Values("disk", "host", "both")),
                         [](const auto& test) {
                           return fmt::format("{}_{}", EngineModes::name({std::get<0>(test.param), 0}),
                                              std::get<1>(test.param));
                         });

TEST_P(KvTierModes, WhatOneEngineHasComputedAnotherLoadsFromTheirStore) {
  TestRedis redis;
  const octavo::Setup setup{
      .mode = GetParam(),
      .kv_transfer = {.enabled = true,
                      .tier = KvTierOptions{.path_or_url = redis.url(), .load_always = true}}};
  TierRig one(setup), other(setup);
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  EXPECT_EQ(one.cached(prompt), 0);
  one.rest();
  EXPECT_EQ(redis.count(), 6u);
  EXPECT_EQ(other.cached(prompt), 96);
  other.forget();
  redis.mood = TestRedis::Mood::lying;
  EXPECT_LE(other.cached(prompt), 16) << "the first block may be the one that it hands out";
  other.ask(some_prompt(2, 100), 5);
  other.rest();
  EXPECT_GT(
      other.engine->own_stats().kv_transfer.failures[static_cast<std::size_t>(KvTransferFailure::mismatch)],
      0);
  EXPECT_FALSE(other.tier().off);
  one.expect_empty();
  other.expect_empty();
}

TEST(KvTier, ARestartFindsTheBlocksAndSpoiltFilesCostThemselves) {
  const ScratchDirectory folder;
  const std::vector<TokenId> prompt = some_prompt(1, 200), other = some_prompt(2, 200);
  {
    TierRig rig({.kv_transfer = tier_options(folder)});
    rig.ask(prompt, 3);
    rig.rest();
    rig.ask(other, 3);
    rig.rest();
    EXPECT_EQ(rig.tier().blocks, 24);
  }
  {
    TierRig rig({.kv_transfer = tier_options(folder)});
    EXPECT_EQ(rig.cached(prompt), 192);
    EXPECT_EQ(rig.tier().stored_blocks, 0);
  }
  int spoilt = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().extension() != ".kv") continue;
    if (++spoilt % 2 == 0) {
      fs::resize_file(entry.path(), 100);
    } else {
      std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(70).put('\x77');
    }
  }
  ASSERT_EQ(spoilt, 24);
  TierRig rig({.kv_transfer = tier_options(folder)});
  EXPECT_EQ(rig.cached(prompt), 0);
  rig.rest();
  EXPECT_EQ(
      rig.engine->own_stats().kv_transfer.failures[static_cast<std::size_t>(KvTransferFailure::corrupt)], 1);
  EXPECT_FALSE(rig.tier().off);
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 192) << "it was computed and written again";
}

TEST(KvTier, RequestsOfTheSamePromptLoadItOnce) {
  const ScratchDirectory folder;
  const std::vector<TokenId> prompt = some_prompt(1, 400);
  TierRig rig({.num_blocks = 200, .kv_transfer = tier_options(folder)});
  rig.ask(prompt, 1);
  rig.forget();
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (int i = 0; i < 6; ++i) {
    sinks.push_back(std::make_shared<Recorder>());
    ASSERT_TRUE(rig.engine->submit(request_for(prompt, 2), sinks.back()));
  }
  for (const auto& sink : sinks) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expected(prompt, 2));
    EXPECT_EQ(sink->record().ends[0].cached_tokens, 384);
  }
  rig.rest();
  EXPECT_EQ(rig.engine->own_stats().kv_transfer.hits, 384);
}

TEST(KvTier, SaltsKeepPromptsApart) {
  const ScratchDirectory folder;
  TierRig rig({.kv_transfer = tier_options(folder)});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  rig.ask(prompt, 1);
  rig.forget();
  Request salted = request_for(prompt, 5);
  salted.identity.salt = "tenant";
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(std::move(salted), sink));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().ends[0].cached_tokens, 0);
}

TEST(KvTier, AnErrorTurnsItOffAndCostsNoToken) {
  const ScratchDirectory folder;
  TierRig rig({.kv_transfer = tier_options(folder)});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  rig.ask(prompt, 3);
  rig.forget();
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.path().extension() == ".kv") {
      fs::remove(entry.path());
      fs::create_directory(entry.path());
    }
  EXPECT_EQ(rig.cached(prompt), 0);
  EXPECT_TRUE(eventually([&] { return rig.tier().off; }));
  rig.forget();
  EXPECT_EQ(rig.cached(prompt), 0);
}

// The file system hangs, because opening a pipe waits for a writer. There are more loads than reading
// threads.
TEST(KvTier, AFolderThatHangsCostsTimeAndNoToken) {
  const ScratchDirectory folder;
  KvTransferOptions options = tier_options(folder);
  options.tier->stuck_us = 500'000;
  TierRig rig({.num_blocks = 200, .kv_transfer = options});
  constexpr unsigned kPrompts = 4;
  for (unsigned i = 0; i < kPrompts; ++i) rig.ask(some_prompt(i, 100), 3);
  rig.forget();
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.path().extension() == ".kv") files.push_back(entry.path());
  EXPECT_EQ(files.size(), 6 * kPrompts);
  for (const fs::path& file : files) {
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  }
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < kPrompts; ++i) {
    sinks.push_back(std::make_shared<Recorder>());
    ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(i, 100), 20), sinks.back()));
  }
  for (unsigned i = 0; i < kPrompts; ++i) {
    sinks[i]->wait_ended(1);
    EXPECT_EQ(sinks[i]->record().tokens, expected(some_prompt(i, 100), 20));
  }
  EXPECT_EQ(rig.cached(some_prompt(9, 100)), 0) << "nothing is asked of it";
  const KvTransferStats stats = rig.engine->own_stats().kv_transfer;
  // A prompt that comes when all reading threads hang is not loaded.
  const std::int64_t lost = stats.failures[static_cast<std::size_t>(KvTransferFailure::lost)];
  EXPECT_GE(lost, 2);
  EXPECT_LE(lost, kPrompts);
  EXPECT_GT(stats.held_blocks, 0) << "somebody may write to them";
  // From here on, the file system works again.
  EXPECT_TRUE(eventually([&] {
    for (const fs::path& file : files)
      if (const int end = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC); end >= 0) ::close(end);
    return at_rest(*rig.engine);
  }));
  rig.expect_empty();
}

TEST(KvTier, AnEngineThatWritesAndLoadsCanBeStopped) {
  const ScratchDirectory folder;
  for (int life = 0; life < 4; ++life) {
    TierRig rig({.num_blocks = 200, .kv_transfer = tier_options(folder)});
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (unsigned i = 0; i < 8; ++i) {
      sinks.push_back(std::make_shared<Recorder>());
      ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(i, 300), 40), sinks.back()));
    }
    sinks[static_cast<std::size_t>(life)]->wait_ended(1);
    rig.engine.reset();
    for (const auto& sink : sinks) EXPECT_TRUE(sink->wait_ended(1));
  }
}

TEST(KvTier, WhatCannotBeDoneIsRefusedAtTheStart) {
  const ScratchDirectory folder;
  const auto field = [&](KvTransferOptions transfer) {
    SchedulerOptions options;
    options.num_blocks = 64;
    options.max_model_len = 512;
    auto executor = std::make_unique<SimulatedExecutor>(SimulatedExecutorOptions{kVocab, kBlock, 64, false});
    const auto engine =
        Engine::start(options, {}, {.executor = std::move(executor), .kv_transfer = std::move(transfer)});
    return engine ? "" : engine.error().field;
  };
  EXPECT_EQ(field(tier_options(folder)), "");
  EXPECT_EQ(field(tier_options(folder, 10)), "kv_transfer_config");
  EXPECT_EQ(field(host_options(1000)), "");
  EXPECT_EQ(field(host_options(10)), "kv_transfer_config");
  EXPECT_EQ(field(host_options(std::int64_t{1} << 60)), "kv_transfer_config");
}

TEST_P(KvTierModes, EnginesShareAFolderAndTheEndWritesWhatIsPending) {
  const ScratchDirectory folder;
  const std::vector<TokenId> prompt = some_prompt(1, 400), other = some_prompt(2, 400);
  TierRig decodes({.mode = GetParam(), .kv_transfer = tier_options(folder)});
  {
    TierRig prefills({.mode = GetParam(), .kv_transfer = tier_options(folder)});
    EXPECT_EQ(prefills.cached(prompt, 1), 0);
    prefills.rest();
    EXPECT_EQ(decodes.cached(prompt), 384);
    EXPECT_EQ(prefills.cached(other, 1), 0);
  }
  EXPECT_EQ(decodes.cached(other), 384);
  decodes.rest();
  decodes.expect_empty();
}

TEST_P(KvTierModes, BlocksOfAnswersAreKeptIfTheyAreWanted) {
  for (const bool prompt_only : {true, false}) {
    const ScratchDirectory folder;
    KvTransferOptions transfer = tier_options(folder);
    transfer.tier->prompt_only = prompt_only;
    TierRig rig({.mode = GetParam(), .kv_transfer = transfer});
    std::vector<TokenId> text = some_prompt(1, 40);
    const auto answer = rig.ask(text, 100).tokens;
    text.insert(text.end(), answer.begin(), answer.end());
    rig.forget();
    // 140 tokens have 8 full blocks. The last block needs a token that no step has computed.
    EXPECT_EQ(rig.cached(text), prompt_only ? 32 : 128);
    rig.rest();
    rig.expect_empty();
  }
}

// If the cache is in host memory, --kv-offloading-size without other options configures a disk tier.
TEST(KvTier, TheSizeAloneMeansTheDiskWhereTheCacheIsInHostMemory) {
  const ScratchDirectory folder;
  KvTransferOptions transfer = tier_options(folder);
  transfer.tier->on_host_of_device = true;
  TierRig rig({.kv_transfer = transfer});
  rig.ask(some_prompt(1, 100), 3);
  rig.rest();
  EXPECT_EQ(rig.tier().blocks, 6);
  EXPECT_FALSE(rig.engine->own_stats().kv_host_tier.enabled);
}

// Some RoPE scalings depend on max_model_len. After a restart with another max_model_len, old blocks must
// not be found.
TEST(KvTier, BlocksOfOtherRotationsAreNotFound) {
  const ScratchDirectory folder;
  EngineOptions options;
  options.model.dir = "tests/data/models/llama-dynamic";
  options.device.type = "cpu";
  options.device.threads = 2;
  options.cache.num_blocks = 60;
  // Returns the number of loaded bytes. `blocks` is the number of new blocks that will be written.
  const auto computed_and_found = [&](int max_model_len, int blocks) {
    options.model.max_model_len = max_model_len;
    options.kv_transfer = {};
    const auto wanted = answers_of(*load_engine(options).value(), 4);
    options.kv_transfer = tier_options(folder);
    const auto engine = load_engine(options).value();
    EXPECT_TRUE(answers_of(*engine, 4) == wanted) << max_model_len;
    EXPECT_TRUE(
        eventually([&] { return engine->own_stats().kv_tier.stored_blocks == blocks && at_rest(*engine); }));
    return engine->own_stats().kv_tier.loaded_bytes;
  };
  EXPECT_EQ(computed_and_found(40, 2), 0);
  EXPECT_EQ(computed_and_found(48, 2), 0);
  EXPECT_GT(computed_and_found(40, 0), 0);
}

}  // namespace
}  // namespace octavo
