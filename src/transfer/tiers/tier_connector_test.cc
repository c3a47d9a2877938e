#include "transfer/tiers/tier_connector.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/eventually.h"
#include "transfer/testing/redis.h"
#include "transfer/testing/tier.h"
#include "transfer/tiers/direct_io.h"

namespace octavo {
namespace {

TEST(TierConnector, BlocksComeBackAlsoToTheNextProcess) {
  Tier tier;
  const auto keys = some_keys(10);
  for (int i = 0; i < 10; ++i) tier.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
  EXPECT_EQ(matched(tier, keys), 0);
  EXPECT_TRUE(tier.store(keys, 100));
  EXPECT_FALSE(tier.store(keys, 100)) << "they are there";
  for (const bool again : {false, true}) {
    if (again) tier.open();
    EXPECT_EQ(matched(tier, keys), 10);
    const LoadResult result = tier.load(keys, 3, 500);
    EXPECT_EQ(result.id, 7u);
    EXPECT_EQ(result.loaded, 7);
    EXPECT_EQ(result.failure, std::nullopt);
    EXPECT_EQ(tier.cache[502], 0);
    for (int i = 3; i < 10; ++i)
      EXPECT_EQ(std::exchange(tier.cache[static_cast<std::size_t>(500 + i)], 0), 1000 + i);
  }
  EXPECT_EQ(tier.stats().blocks, 10);
  EXPECT_EQ(tier.load(keys, 0, 500, true).loaded, 0) << "cancelled";
}

// A block has two bf16 numbers. Only the disk compresses them.
TEST(TierConnector, BlocksBelowHostMemoryMayBeCompressed) {
  Tier tier;
  tier.format = {.fingerprint = "model", .dtype = "bf16", .block_size = 1, .bytes = 4, .planes = {{1, 4}}};
  tier.options.host_bytes = 4 * tier.format.bytes;
  tier.options.compression = BlockCompression::int8;
  tier.open();
  const auto keys = some_keys(4), others = some_keys(4, 6);
  // The two numbers of a block: 1 and 0.1001; after compression and expansion: 1 and 13/127.
  constexpr std::int32_t kBlock = 0x3f803dcd, kExpanded = 0x3f803dd2;
  tier.cache[100] = kBlock;
  EXPECT_TRUE(tier.store(keys, 100));
  EXPECT_EQ(tier.load(keys, 0, 500).loaded, 4);
  EXPECT_EQ(tier.cache[500], kBlock) << "from host memory";
  EXPECT_TRUE(eventually([&] { return tier.stats().blocks == 4; }));
  EXPECT_TRUE(tier.store(others, 200));
  EXPECT_EQ(tier.load(keys, 0, 600).loaded, 4);
  EXPECT_EQ(tier.cache[600], kExpanded) << "from the disk";

  tier.connector.reset();
  tier.options.compression = BlockCompression::none;
  tier.open();
  EXPECT_EQ(matched(tier, keys), 0) << "plain blocks have a separate folder";
  tier.options.compression = BlockCompression::fp8;
  EXPECT_EQ(TierConnector::open(tier.options, kFormat, 800, {}).error().code, ErrorCode::unsupported);
}

TEST(TierConnector, FilesPastThePageCacheAreFoundThroughIt) {
  Tier tier;
  const auto alignment = direct_io_alignment(tier.folder.path());
  if (!alignment) GTEST_SKIP() << alignment.error().message;
  tier.options.use_odirect = true;
  tier.open();
  const auto keys = some_keys(10);
  for (int i = 0; i < 10; ++i) tier.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
  EXPECT_TRUE(tier.store(keys, 100));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tier.folder.path()))
    if (entry.path().extension() == ".kv") {
      EXPECT_EQ(entry.file_size(), *alignment);
    }
  for (const bool direct : {true, false}) {
    tier.options.use_odirect = direct;
    tier.open();
    EXPECT_EQ(tier.load(keys, 0, 500).loaded, 10);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(std::exchange(tier.cache[static_cast<std::size_t>(500 + i)], 0), 1000 + i);
  }
}

TEST(TierConnector, UnderArcWhatTwoPromptsHadStays) {
  for (const EvictionPolicy policy : {EvictionPolicy::lru, EvictionPolicy::arc}) {
    Tier tier;
    tier.options.bytes = 20 * static_cast<std::int64_t>(kFormat.stride());
    expect_arc_keeps_what_two_had(tier, policy);
    EXPECT_EQ(tier.stats().blocks, 20);
  }
}

TEST(TierConnector, AStoreIsAskedFirst) {
  TestRedis redis;
  Tier one(redis), other(redis);
  const auto keys = some_keys(10);
  for (int i = 0; i < 10; ++i) one.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
  EXPECT_EQ(other.connector->matched({.id = 1, .keys = keys, .cached = 10}), 0) << "nothing is missing";
  EXPECT_EQ(other.connector->matched({.id = 1, .keys = keys}), std::nullopt);
  EXPECT_EQ(matched(other, {.id = 1, .keys = keys}), 0);
  EXPECT_TRUE(one.store(keys, 100));
  EXPECT_EQ(matched(other, {.id = 1, .keys = keys}), 0) << "it has been looked up";
  other.connector->decline({.id = 1});
  EXPECT_EQ(matched(other, {.id = 2, .keys = keys}), 10);
  EXPECT_FALSE(other.post(keys, 100)) << "they are there";
  EXPECT_EQ(other.load(keys, 3, 500).loaded, 7);
  for (int i = 3; i < 10; ++i) EXPECT_EQ(other.cache[static_cast<std::size_t>(500 + i)], 1000 + i);
  redis.clear();
  const LoadResult removed = other.load(keys, 0, 500);
  EXPECT_EQ(removed.loaded, 0);
  EXPECT_EQ(removed.failure, std::nullopt);
  EXPECT_FALSE(other.stats().off);
}

TEST(TierConnector, AStoreThatIsSilentIsNotWaitedFor) {
  TestRedis redis;
  Tier tier(redis);
  const auto keys = some_keys(10);
  EXPECT_TRUE(tier.store(keys, 100));
  redis.mood = TestRedis::Mood::silent;
  tier.options.store_silence_ms = 200;
  tier.open();
  const LoadResult result = tier.load(keys, 0, 500);
  EXPECT_EQ(result.loaded, 0);
  EXPECT_EQ(result.failure, KvTransferFailure::unreachable);
  EXPECT_EQ(tier.connector->matched({.id = 1, .keys = some_keys(10, 6)}), 0) << "it is left alone";
  EXPECT_FALSE(tier.connector->wants({.keys = some_keys(10, 6)}));
  EXPECT_FALSE(tier.stats().off);
}

TEST(TierConnector, WhatIsSpoiltEndsTheLoadAndNothingElse) {
  Tier tier;
  const auto keys = some_keys(10);
  tier.store(keys, 100);
  int at = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tier.folder.path()))
    if (entry.path().string().ends_with("0000000000000004.kv")) {
      std::filesystem::resize_file(entry.path(), 70);
      ++at;
    }
  ASSERT_EQ(at, 1);
  const LoadResult result = tier.load(keys, 0, 500);
  EXPECT_EQ(result.loaded, 4);
  EXPECT_EQ(result.failure, KvTransferFailure::corrupt);
  EXPECT_EQ(matched(tier, keys), 4);
  EXPECT_EQ(tier.stats().blocks, 4) << "the blocks after it are gone, too";
  EXPECT_FALSE(tier.stats().off);
  EXPECT_TRUE(tier.store(keys, 100)) << "it is written again";
  EXPECT_EQ(tier.load(keys, 0, 500).loaded, 10);
}

TEST(TierConnector, BehindABlockThatIsGoneNothingIsRead) {
  Tier tier;
  const auto keys = some_keys(10);
  tier.store(keys, 100);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tier.folder.path())) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("0000000000000004.kv")) std::filesystem::remove(entry.path());
    if (name.ends_with("0000000000000007.kv")) std::filesystem::resize_file(entry.path(), 70);
  }
  const LoadResult result = tier.load(keys, 0, 500);
  EXPECT_EQ(result.loaded, 4);
  EXPECT_EQ(result.failure, std::nullopt);
  EXPECT_EQ(tier.stats().blocks, 9) << "the spoilt one has not been looked at";
}

TEST(TierConnector, AnErrorOfTheSystemTurnsItOff) {
  Tier tier;
  tier.store(some_keys(4), 100);
  // Replaces each folder with a file.
  for (const auto& entry : std::filesystem::directory_iterator(tier.folder.path()))
    std::ofstream(entry.path() / "01") << "";
  std::vector<Hash128> keys = some_keys(4);
  keys.push_back({1, 0x0100000000000000});
  EXPECT_TRUE(tier.store(keys, 200));
  EXPECT_TRUE(tier.stats().off);
  EXPECT_EQ(matched(tier, keys), 0);
  EXPECT_FALSE(tier.connector->wants({.keys = some_keys(4, 9)}));
}

TEST(TierConnector, BlocksAreWrittenWhenEnoughPromptsHadThem) {
  Tier tier;
  tier.options.store_threshold = 3;
  tier.open();
  const auto shared = some_keys(4);
  for (std::uint64_t i = 0; i < 2; ++i) {
    auto keys = shared;
    keys.push_back({77, i});
    EXPECT_FALSE(tier.post(keys, 0));
  }
  auto keys = shared;
  keys.push_back({77, 99});
  EXPECT_TRUE(tier.store(keys, 0));
  EXPECT_EQ(tier.stats().stored_blocks, 4);
  EXPECT_EQ(matched(tier, keys), 4);
}

TEST(TierConnector, OfAPromptThatIsTooLongTheBeginningIsKept) {
  Tier tier;
  tier.options.bytes = 5 * static_cast<std::int64_t>(kFormat.stride());
  tier.open();
  EXPECT_TRUE(tier.store(some_keys(10), 100));
  EXPECT_EQ(matched(tier, some_keys(10)), 5);
  EXPECT_FALSE(tier.post(some_keys(10), 100));
}

TEST(TierConnector, CountsOfFewBlocksAreKept) {
  Tier tier;
  tier.options.store_threshold = 2;
  tier.options.max_tracker_size = 4;
  tier.open();
  EXPECT_FALSE(tier.post(some_keys(4, 1), 0));
  EXPECT_FALSE(tier.post(some_keys(4, 2), 0));  // counts of the oldest blocks were dropped
  EXPECT_FALSE(tier.post(some_keys(4, 1), 0));
  EXPECT_TRUE(tier.store(some_keys(4, 1), 0));
}

TEST(TierConnector, TheAnswersOfARequestAreOneUseOfItsBlocks) {
  Tier tier;
  tier.options.store_threshold = 2;
  tier.open();
  const auto keys = some_keys(4);
  for (int answer = 0; answer < 3; ++answer) EXPECT_FALSE(tier.connector->wants({.id = 7, .keys = keys}));
  EXPECT_TRUE(tier.connector->wants({.id = 8, .keys = keys}));
}

TEST(TierConnector, ADiskThatIsTooSlowIsGivenNoMore) {
  Tier tier;
  tier.slow = true;
  ASSERT_TRUE(tier.post(some_keys(60, 1), 0));
  // Pending writes may use at most an eighth of the 800 cache blocks.
  ASSERT_TRUE(tier.post(some_keys(50, 2), 0));
  EXPECT_EQ(tier.connector->take_stored(0), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(tier.stats().dropped_stores, 50);
  tier.slow = false;
  EXPECT_EQ(tier.wait_stored(), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(tier.stats().blocks, 60);
}

TEST(TierConnector, WhatWaitsGivesWay) {
  Tier tier;
  tier.slow = true;
  ASSERT_TRUE(tier.post(some_keys(20, 1), 0));
  // The first task is running now, so give_way() can end only the second one.
  ASSERT_TRUE(tier.post(some_keys(20, 2), 0));
  EXPECT_TRUE(tier.connector->give_way());
  EXPECT_FALSE(tier.connector->give_way());
  tier.slow = false;
  std::vector<std::uint64_t> owners;
  while (owners.size() < 2)
    for (const std::uint64_t owner : tier.wait_stored()) owners.push_back(owner);
  std::ranges::sort(owners);
  EXPECT_EQ(owners, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_LT(tier.stats().blocks, 20);
}

TEST(TierConnector, WhatIsComputedFasterIsNotLoaded) {
  Tier tier;
  tier.options.load_always = false;
  tier.open();
  const auto keys = some_keys(10);
  tier.store(keys, 0);
  EXPECT_TRUE(tier.connector->worth_loading(10, keys, 1e-12)) << "nothing is known of the disk";
  tier.load(keys, 0, 500);
  EXPECT_TRUE(tier.connector->worth_loading(10, keys, 10.0));
  EXPECT_TRUE(tier.connector->worth_loading(10, keys, 0)) << "nothing is known of the model";
  int tried = 0;
  for (int i = 0; i < 64; ++i) tried += tier.connector->worth_loading(10, keys, 1e-12);
  EXPECT_EQ(tried, 2) << "now and then, to see whether the disk is still slow";
  EXPECT_EQ(tier.stats().skipped_loads, 62);
}

TEST(TierConnector, EnginesShareAFolder) {
  for (const bool with_host : {false, true}) {
    Tier one;
    if (with_host) one.options.host_bytes = 20 * kFormat.bytes;
    one.open();
    Tier other(one.options);
    const auto keys = some_keys(10);
    for (int i = 0; i < 10; ++i) one.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
    EXPECT_EQ(matched(other, keys), 0);
    EXPECT_TRUE(one.store(keys, 100));
    EXPECT_TRUE(eventually([&] { return one.stats().stored_blocks == 10; }));
    EXPECT_EQ(matched(other, keys), 10);
    EXPECT_EQ(other.load(keys, 0, 500).loaded, 10);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(other.cache[static_cast<std::size_t>(500 + i)], 1000 + i);
    EXPECT_FALSE(other.post(keys, 0)) << "they are stored";
  }
}

TEST(TierConnector, TheEndWritesWhatIsPending) {
  for (const bool with_host : {false, true}) {
    Tier tier;
    if (with_host) tier.options.host_bytes = 100 * kFormat.bytes;
    tier.open();
    const auto keys = some_keys(60);
    tier.slow = true;
    ASSERT_TRUE(tier.post(keys, 0));
    tier.slow = false;
    tier.open();
    EXPECT_EQ(matched(tier, keys), 60);
  }
}

}  // namespace
}  // namespace octavo
