// For tests: a tier connector. The engine's cache is a vector of numbers, one for each block.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/testing/scratch_directory.h"
#include "transfer/testing/redis.h"
#include "transfer/tiers/tier_connector.h"

namespace octavo {

const BlockFormat kFormat{.fingerprint = "model", .dtype = "i32", .block_size = 16, .bytes = 4};

inline std::vector<Hash128> some_keys(int count, std::uint64_t text = 5) {
  std::vector<Hash128> keys;
  for (int i = 0; i < count; ++i) keys.push_back({static_cast<std::uint64_t>(i), text});
  return keys;
}

struct Tier {
  ScratchDirectory folder;
  KvTierOptions options{.path_or_url = folder.path(), .bytes = 1 << 20, .load_always = true};
  BlockFormat format = kFormat;
  std::vector<std::int32_t> cache = std::vector<std::int32_t>(1000);
  std::atomic<bool> slow = false;
  std::promise<LoadResult> loaded;
  std::mutex mutex;
  std::condition_variable woken;
  std::unique_ptr<KvConnector> connector;
  std::uint64_t last_owner = 0;

  void open() {
    connector.reset();
    connector =
        TierConnector::open(options, format, 800,
                            {.read =
                                 [this](KvLocation b, std::span<std::byte> out) {
                                   while (slow) std::this_thread::yield();
                                   std::memcpy(out.data(), &cache[static_cast<std::size_t>(b.number)], 4);
                                 },
                             .write =
                                 [this](KvLocation b, std::span<const std::byte> bytes) {
                                   std::memcpy(&cache[static_cast<std::size_t>(b.number)], bytes.data(), 4);
                                 },
                             .loaded = [this](LoadResult result) { loaded.set_value(std::move(result)); },
                             .wake =
                                 [this] {
                                   const std::lock_guard lock(mutex);
                                   woken.notify_all();
                                 }})
            .value();
  }
  Tier() { open(); }
  explicit Tier(const TestRedis& store) {
    options.path_or_url = store.url();
    open();
  }
  explicit Tier(KvTierOptions other) : options(std::move(other)) { open(); }
  ~Tier() { slow = false; }

  // Starts to store the cache's blocks first, first + 1, ... under the keys. Returns false if the tier does
  // not want them.
  bool post(const std::vector<Hash128>& keys, int first) {
    if (!connector->wants({.id = ++last_owner, .keys = keys})) return false;
    StoreTask task{.owner = last_owner, .keys = keys};
    for (std::size_t i = 0; i < keys.size(); ++i)
      task.blocks.push_back({.number = first + static_cast<int>(i)});
    EXPECT_EQ(connector->store({.keys = keys}, std::move(task), 0), std::nullopt);
    return true;
  }
  std::vector<std::uint64_t> wait_stored() {
    for (;;)
      if (auto owners = connector->take_stored(0); !owners.empty()) return owners;
  }
  bool store(const std::vector<Hash128>& keys, int first) {
    if (!post(keys, first)) return false;
    EXPECT_EQ(wait_stored(), (std::vector<std::uint64_t>{last_owner}));
    return true;
  }
  LoadResult load(const std::vector<Hash128>& keys, int from, int first, bool cancelled = false) {
    LoadTask task;
    task.id = 7;
    task.first = from;
    task.keys = keys;
    task.cancelled = std::make_shared<std::atomic<bool>>(cancelled);
    for (int i = from; i < static_cast<int>(keys.size()); ++i) task.blocks.push_back({.number = first + i});
    loaded = {};
    connector->load(std::move(task));
    return loaded.get_future().get();
  }
  EngineStats all_stats() const {
    EngineStats stats;
    connector->add_stats(stats);
    return stats;
  }
  KvTierStats stats() const { return all_stats().kv_tier; }
  KvTierStats host_stats() const { return all_stats().kv_host_tier; }
};

// Waits for the lookup and returns the number of blocks found.
inline int matched(Tier& tier, const KvPrompt& prompt) {
  for (;;)
    if (const auto blocks = tier.connector->matched(prompt)) return *blocks;
}
// For a prompt that has not been looked up before.
inline int matched(Tier& tier, const std::vector<Hash128>& keys) {
  tier.connector->decline({.id = 99});
  return matched(tier, {.id = 99, .keys = keys});
}

inline KvTierOptions on_host(int blocks) {
  return {.host_bytes = blocks * kFormat.bytes, .load_always = true};
}

// tier: must have a capacity of 20 blocks.
inline void expect_arc_keeps_what_two_had(Tier& tier, EvictionPolicy policy) {
  tier.options.eviction = policy;
  tier.open();
  const auto shared = some_keys(5);
  auto longer = shared;
  for (const Hash128& key : some_keys(5, 99)) longer.push_back(key);
  EXPECT_TRUE(tier.store(shared, 100));
  EXPECT_TRUE(tier.store(longer, 100));
  for (std::uint64_t other = 6; other < 30; ++other) EXPECT_TRUE(tier.store(some_keys(10, other), 100));
  EXPECT_EQ(matched(tier, shared), policy == EvictionPolicy::arc ? 5 : 0);
}

}  // namespace octavo
