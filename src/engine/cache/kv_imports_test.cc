// Tests the states of imports (kv_import.h). The test decides the results of the connector.
#include "engine/cache/kv_imports.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "engine/testing/rig.h"

namespace octavo {
namespace {

constexpr std::int64_t kRoomUs = 1000;

struct ChosenConnector final : KvConnector {
  std::optional<int> blocks = 0;
  bool worth = true;
  std::vector<LoadTask> loads;
  std::vector<RequestId> stuck;
  int waits = 0, declines = 0;

  std::optional<int> matched(const KvPrompt&) override { return blocks; }
  bool worth_loading(int, std::span<const Hash128>, double) override { return worth; }
  void load(LoadTask task) override { loads.push_back(std::move(task)); }
  std::vector<RequestId> take_stuck(std::int64_t) override { return std::exchange(stuck, {}); }
  void wait(const KvPrompt&) override { ++waits; }
  void decline(const KvPrompt&) override { ++declines; }
  bool wants(const KvPrompt&) override { return false; }
  std::optional<KvTransferParams> store(const KvPrompt&, StoreTask, std::int64_t) override { return {}; }
  std::vector<std::uint64_t> take_stored(std::int64_t) override { return {}; }
  bool give_way() override { return false; }
  void add_stats(EngineStats&) const override {}
};

struct KvImportsTest : testing::Test {
  std::unique_ptr<Scheduler> scheduler = [] {
    SchedulerOptions options;
    options.num_blocks = 20;
    options.block_size = kBlock;
    options.max_model_len = 256;
    return Scheduler::create(options).value();
  }();
  KvCacheSide side{.format = {.fingerprint = "model", .dtype = "i32", .block_size = kBlock, .bytes = 4},
                   .scheduler = *scheduler,
                   .events = {nullptr, 1}};
  ChosenConnector* connector = nullptr;
  KvImports imports{side, kRoomUs};
  RequestId last_id = 0;

  KvImportsTest() {
    auto owned = std::make_unique<ChosenConnector>();
    connector = owned.get();
    side.connectors.push_back(std::move(owned));
  }
  ~KvImportsTest() override {
    imports.let_go_all();
    EXPECT_EQ(side.stats.held_blocks, 0);
    EXPECT_EQ(scheduler->stats().blocks_used, 0);
  }
  // Returns a request whose prompt has `blocks` full blocks, followed by one token.
  std::shared_ptr<Accepted> request(int blocks, unsigned text = 1) {
    auto accepted = std::make_shared<Accepted>();
    accepted->id = ++last_id;
    accepted->request.prompt = some_prompt(text, blocks * kBlock + 1);
    accepted->unfinished = 1;
    return accepted;
  }
  std::vector<RequestId> advance(std::int64_t now_us = 0) { return imports.advance(now_us, 0); }
  using Ids = std::vector<RequestId>;
};

TEST_F(KvImportsTest, AnUnknownPromptIsComputedAtOnce) {
  const auto accepted = request(4);
  EXPECT_TRUE(imports.ready(accepted, 0));
  EXPECT_EQ(connector->declines, 1);
  imports.drop_done();
  EXPECT_TRUE(imports.empty());
}

TEST_F(KvImportsTest, FromLookingUpOverLoadingToDone) {
  const auto accepted = request(4);
  connector->blocks = std::nullopt;
  EXPECT_FALSE(imports.ready(accepted, 0));
  EXPECT_EQ(advance(), Ids());
  connector->blocks = 3;
  EXPECT_EQ(advance(), Ids()) << "it is loading";
  ASSERT_EQ(connector->loads.size(), 1u);
  EXPECT_EQ(connector->loads[0].blocks.size(), 3u);
  EXPECT_EQ(side.stats.held_blocks, 3);
  imports.add_result({.id = accepted->id, .loaded = 3, .from = {3}});
  EXPECT_EQ(advance(), Ids{accepted->id});
  EXPECT_TRUE(imports.ready(accepted, 0));
  EXPECT_EQ(side.stats.hits, 3 * kBlock);
  EXPECT_EQ(accepted->loaded[static_cast<std::size_t>(KvSource::peer)], 3 * kBlock);
  EXPECT_EQ(side.cached_blocks(*accepted), 3);
  EXPECT_EQ(side.stats.held_blocks, 3) << "until the request is scheduled";
  accepted->scheduled = true;
  EXPECT_EQ(advance(), Ids());
  EXPECT_TRUE(imports.empty());
}

TEST_F(KvImportsTest, WithoutRoomItWaitsAndIsComputedAfterTheLimit) {
  connector->blocks = 12;
  const auto first = request(12), second = request(12, 2);
  EXPECT_FALSE(imports.ready(first, 0));
  EXPECT_FALSE(imports.ready(second, 0));
  ASSERT_EQ(connector->loads.size(), 1u) << "20 blocks hold one of them";
  EXPECT_EQ(connector->waits, 1);
  EXPECT_EQ(advance(kRoomUs - 1), Ids());
  EXPECT_EQ(advance(kRoomUs), Ids{second->id});
  EXPECT_EQ(side.stats.failures[static_cast<std::size_t>(KvTransferFailure::no_blocks)], 1);
  imports.add_result({.id = first->id, .loaded = 0, .failure = KvTransferFailure::lost});
  EXPECT_EQ(advance(kRoomUs), Ids{first->id});
  EXPECT_EQ(side.stats.held_blocks, 0) << "nothing was loaded";
}

TEST_F(KvImportsTest, BehindALoadOfTheSamePromptItWaitsForThatLoad) {
  connector->blocks = 3;
  const auto first = request(4), second = request(4);
  EXPECT_FALSE(imports.ready(first, 0));
  EXPECT_FALSE(imports.ready(second, 0));
  ASSERT_EQ(connector->loads.size(), 1u);
  EXPECT_EQ(advance(), Ids());
  imports.add_result({.id = first->id, .loaded = 3});
  EXPECT_EQ(advance(), (Ids{first->id, second->id})) << "the second one finds the blocks in the cache";
  EXPECT_EQ(connector->loads.size(), 1u);
}

TEST_F(KvImportsTest, AStuckLoadIsGivenUpAndKeepsItsBlocksUntilItEnds) {
  connector->blocks = 3;
  const auto accepted = request(4);
  EXPECT_FALSE(imports.ready(accepted, 0));
  connector->stuck = {accepted->id};
  EXPECT_EQ(advance(), Ids{accepted->id});
  EXPECT_TRUE(imports.ready(accepted, 0));
  EXPECT_TRUE(*connector->loads[0].cancelled);
  accepted->scheduled = true;
  EXPECT_EQ(advance(), Ids());
  EXPECT_EQ(side.stats.held_blocks, 3) << "the load may still write them";
  imports.add_result({.id = accepted->id, .loaded = 1});
  EXPECT_EQ(advance(), Ids()) << "it was ready before";
  EXPECT_EQ(side.stats.held_blocks, 0);
  EXPECT_TRUE(imports.empty());
}

TEST_F(KvImportsTest, AnAbortedRequestIsForgottenWhenItsLoadEnds) {
  connector->blocks = std::nullopt;
  const auto looks_up = request(4);
  EXPECT_FALSE(imports.ready(looks_up, 0));
  looks_up->unfinished = 0;
  connector->blocks = 3;
  const auto loads = request(4, 2);
  EXPECT_FALSE(imports.ready(loads, 0));
  loads->unfinished = 0;
  (void)advance();
  EXPECT_TRUE(*connector->loads[0].cancelled);
  EXPECT_EQ(side.stats.held_blocks, 3);
  imports.add_result({.id = loads->id, .loaded = 0});
  (void)advance();
  EXPECT_TRUE(imports.empty());
}

TEST_F(KvImportsTest, LoadedBlocksGiveWay) {
  connector->blocks = 3;
  const auto accepted = request(4);
  EXPECT_FALSE(imports.ready(accepted, 0));
  EXPECT_FALSE(imports.give_way()) << "the load may still write them";
  imports.add_result({.id = accepted->id, .loaded = 3});
  (void)advance();
  EXPECT_TRUE(imports.give_way());
  EXPECT_EQ(side.stats.held_blocks, 0);
  EXPECT_FALSE(imports.give_way());
  EXPECT_TRUE(imports.ready(accepted, 0));
}

}  // namespace
}  // namespace octavo
