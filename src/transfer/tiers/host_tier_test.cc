// Tests the tier connector with host memory: without a tier below it, with a disk, and with a store.
#include <gtest/gtest.h>

#include "base/testing/eventually.h"
#include "transfer/testing/redis.h"
#include "transfer/testing/tier.h"

namespace octavo {
namespace {

TEST(TierConnector, BlocksComeBackFromHostMemory) {
  Tier tier(on_host(20));
  const auto keys = some_keys(10);
  for (int i = 0; i < 10; ++i) tier.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
  EXPECT_EQ(matched(tier, keys), 0);
  EXPECT_TRUE(tier.store(keys, 100));
  EXPECT_FALSE(tier.store(keys, 100)) << "they are there";
  EXPECT_EQ(matched(tier, keys), 10);
  const LoadResult result = tier.load(keys, 3, 500);
  EXPECT_EQ(result.loaded, 7);
  EXPECT_EQ(result.failure, std::nullopt);
  for (int i = 3; i < 10; ++i) EXPECT_EQ(tier.cache[static_cast<std::size_t>(500 + i)], 1000 + i);
  const KvTierStats stats = tier.host_stats();
  EXPECT_TRUE(stats.enabled && !tier.stats().enabled);
  EXPECT_EQ(stats.blocks, 10);
  EXPECT_EQ(stats.bytes_max, 20 * kFormat.bytes);
  EXPECT_EQ(stats.block_bytes, kFormat.bytes);
  EXPECT_EQ(stats.stored_bytes, 10 * kFormat.bytes);
  EXPECT_EQ(stats.loaded_bytes, 7 * kFormat.bytes);
  EXPECT_EQ(tier.connector->held(KvMedium::host, keys), std::vector<bool>(10, true));
  EXPECT_EQ(tier.connector->held(KvMedium::storage, keys), std::vector<bool>(10, false));
  for (std::uint64_t text = 6; text < 9; ++text) EXPECT_TRUE(tier.store(some_keys(10, text), 200));
  EXPECT_EQ(tier.connector->take_removed(KvMedium::host).size(), 20u);
  EXPECT_EQ(matched(tier, keys), 0);
  EXPECT_EQ(tier.load(keys, 0, 500).loaded, 0);
}

TEST(TierConnector, HostMemoryEvictsByThePolicyAndTheThreshold) {
  for (const EvictionPolicy policy : {EvictionPolicy::lru, EvictionPolicy::arc}) {
    Tier tier(on_host(20));
    expect_arc_keeps_what_two_had(tier, policy);
    EXPECT_EQ(tier.host_stats().blocks, 20);
  }
  Tier tier(on_host(20));
  tier.options.store_threshold = 2;
  tier.open();
  EXPECT_FALSE(tier.post(some_keys(4), 0));
  EXPECT_TRUE(tier.store(some_keys(4), 0));
}

TEST(TierConnector, HostMemoryIsAheadOfTheDisk) {
  Tier tier;
  tier.options.host_bytes = 10 * kFormat.bytes;
  tier.open();
  const auto first = some_keys(10, 1), second = some_keys(10, 2);
  for (int i = 0; i < 20; ++i) tier.cache[static_cast<std::size_t>(100 + i)] = 1000 + i;
  EXPECT_TRUE(tier.store(first, 100));
  EXPECT_TRUE(eventually([&] { return tier.stats().stored_blocks == 10; }));
  EXPECT_TRUE(tier.store(second, 110));
  EXPECT_TRUE(eventually([&] { return tier.stats().stored_blocks == 20; }));
  EXPECT_EQ(tier.host_stats().blocks, 10);
  EXPECT_EQ(tier.host_stats().evicted_blocks, 10);
  EXPECT_EQ(tier.connector->held(KvMedium::storage, first), std::vector<bool>(10, true));
  EXPECT_EQ(tier.connector->take_written_below().size(), 20u);
  for (int from : {0, 1}) {  // 0: loads from the disk, 1: loads from host memory
    EXPECT_EQ(matched(tier, first), 10);
    EXPECT_EQ(tier.load(first, 0, 500).loaded, 10);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(std::exchange(tier.cache[static_cast<std::size_t>(500 + i)], 0), 1000 + i);
    EXPECT_EQ(tier.stats().loaded_bytes, 10 * kFormat.bytes) << from;
    EXPECT_EQ(tier.host_stats().loaded_bytes, (from + 1) * 10 * kFormat.bytes);
  }
  EXPECT_EQ(tier.stats().bytes_max, 1 << 20);
  tier.open();
  EXPECT_EQ(matched(tier, second), 10) << "a restart finds the disk";
  EXPECT_EQ(tier.load(second, 0, 500).loaded, 10);
  EXPECT_EQ(tier.cache[500], 1010);
}

TEST(TierConnector, AStoreIsNotAskedForWhatHostMemoryHas) {
  TestRedis redis;
  Tier tier(redis);
  tier.options.host_bytes = 20 * kFormat.bytes;
  tier.open();
  const auto keys = some_keys(10);
  EXPECT_TRUE(tier.store(keys, 100));
  EXPECT_TRUE(eventually([&] { return redis.count() == 10u; }));
  redis.mood = TestRedis::Mood::silent;
  EXPECT_EQ(tier.connector->matched({.id = 1, .keys = keys}), 10);
  EXPECT_EQ(tier.load(keys, 0, 500).loaded, 10);
  EXPECT_EQ(tier.connector->matched({.id = 2, .keys = some_keys(10, 6)}), std::nullopt);
  redis.hang_up();
}

// Blocks in host memory are loaded even if computing is faster than loading from the disk.
TEST(TierConnector, RatesOfHostMemoryAndOfTheDiskAreKeptApart) {
  Tier tier;
  tier.options.host_bytes = 10 * kFormat.bytes;
  tier.options.load_always = false;
  tier.open();
  const auto near = some_keys(10, 1), far = some_keys(10, 2);
  for (const auto& keys : {near, far}) {
    EXPECT_TRUE(tier.store(keys, 100));
    const std::int64_t all = keys == near ? 10 : 20;
    EXPECT_TRUE(eventually([&] { return tier.stats().stored_blocks == all; }));
  }
  EXPECT_EQ(tier.load(near, 0, 500).loaded, 10) << "from the disk, into host memory";
  int of_near = 0, of_far = 0;
  for (int i = 0; i < 64; ++i) of_near += tier.connector->worth_loading(10, near, 1e-12);
  for (int i = 0; i < 64; ++i) of_far += tier.connector->worth_loading(10, far, 1e-12);
  EXPECT_EQ(of_near, 64);
  EXPECT_EQ(of_far, 2);
  EXPECT_EQ(tier.host_stats().skipped_loads, 62);
}

TEST(TierConnector, HostMemoryThatIsTooMuchOrTooLittleIsRefusedWithTheFigures) {
  const auto message = [](std::int64_t bytes) {
    const auto opened = TierConnector::open({.host_bytes = bytes}, kFormat, 800, {});
    return opened ? "" : opened.error().message;
  };
  EXPECT_NE(message(3).find("3 bytes of host memory are too few, because one KV block has 4"),
            std::string::npos);
  EXPECT_NE(message(std::int64_t{1} << 60).find("1152921504606846976 bytes"), std::string::npos);
}

}  // namespace
}  // namespace octavo
