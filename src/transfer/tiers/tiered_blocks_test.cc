#include "transfer/tiers/tiered_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "transfer/testing/redis.h"
#include "transfer/tiers/block_files.h"
#include "transfer/tiers/host_blocks.h"
#include "transfer/tiers/store_blocks.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

const BlockFormat kFormat{.fingerprint = "model", .dtype = "bf16", .block_size = 16, .bytes = 500};

Hash128 key(int i) {
  return {static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15, static_cast<std::uint64_t>(i)};
}

std::vector<Hash128> keys(int first, int count) {
  std::vector<Hash128> all;
  for (int i = first; i < first + count; ++i) all.push_back(key(i));
  return all;
}

// A disk whose writes wait until the test allows them, and whose reads all fail.
class BadDisk final : public BlockStore {
 public:
  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override {
    const std::lock_guard lock(mutex_);
    std::vector<bool> stored;
    for (const Hash128& key : keys) stored.push_back(known_.contains(key));
    return stored;
  }
  std::size_t most() const override { return 1000; }
  void forget_all() override {
    const std::lock_guard lock(mutex_);
    known_.clear();
  }
  BlockStore* own(KvMedium medium) override { return medium == KvMedium::storage ? this : nullptr; }
  std::int64_t count() const override {
    const std::lock_guard lock(mutex_);
    return std::ssize(known_);
  }
  void touch(std::span<const Hash128>) override {}
  Result<> read(Hash128, const TakeBlock&) override { return failure(ErrorCode::io, "the disk is gone"); }
  Result<> write(Hash128 key, const FillBlock&) override {
    ++begun;
    while (!may_write) std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    known_.insert(key);
    ++written;
    return {};
  }
  void remove(std::span<const Hash128>) override {}

  std::atomic<int> begun = 0, written = 0;
  std::atomic<bool> may_write = false;

 private:
  mutable std::mutex mutex_;
  std::set<Hash128> known_;
};

struct Tiers {
  ScratchDirectory folder;
  std::unique_ptr<TieredBlocks> blocks;

  explicit Tiers(int on_host, int on_disk = 1000) { open(on_host, on_disk); }
  Tiers(int on_host, const TestRedis& redis, int silence_ms = 5'000) {
    open(on_host, StoreBlocks::open(redis.url(), {}, kFormat, silence_ms).value());
  }
  Tiers(int on_host, std::unique_ptr<BlockStore> below) { open(on_host, std::move(below)); }

  void open(int on_host, int on_disk = 1000) {
    blocks.reset();
    open(on_host,
         BlockFiles::open(folder.path(), kFormat, on_disk * static_cast<std::int64_t>(kFormat.stride()))
             .value());
  }
  void open(int on_host, std::unique_ptr<BlockStore> below) {
    auto host =
        HostBlocks::open(kFormat.bytes, on_host * kFormat.bytes, EvictionPolicy::lru, 0, allocate_host)
            .value();
    blocks = std::make_unique<TieredBlocks>(kFormat.bytes, std::move(host), std::move(below), [] {});
  }

  BlockStore& host() { return *blocks->own(KvMedium::host); }
  BlockStore& disk() { return *blocks->own(KvMedium::storage); }

  void put(int first, int count) {
    for (int i = first; i < first + count; ++i)
      EXPECT_TRUE(blocks->write(key(i), [&](std::span<std::byte> contents) {
        std::ranges::fill(contents, static_cast<std::byte>(i));
      }));
    blocks->touch(keys(first, count));
  }
  bool written_below(std::int64_t count) {
    return eventually(
        [&] { return blocks->moved().stored_blocks + blocks->moved().dropped_stores >= count; });
  }
  Result<> get(int i) {
    bool same = false;
    const Result<> read = blocks->read(key(i), [&](std::span<const std::byte> contents) {
      same = std::ranges::all_of(contents, [&](std::byte byte) { return byte == static_cast<std::byte>(i); });
    });
    EXPECT_EQ(same, read.has_value());
    return read;
  }
};

TEST(TieredBlocks, WhatHostMemoryEvictsIsOnTheDiskAndComesBack) {
  Tiers tiers(4);
  tiers.put(0, 4);
  EXPECT_TRUE(tiers.written_below(4));
  tiers.put(4, 4);
  EXPECT_TRUE(tiers.written_below(8));
  EXPECT_EQ(tiers.host().count(), 4);
  EXPECT_EQ(tiers.disk().count(), 8);
  EXPECT_FALSE(tiers.host().contains(key(2)));
  EXPECT_EQ(tiers.blocks->contains(keys(0, 9)), (std::vector<bool>{1, 1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(tiers.get(2));
  EXPECT_TRUE(tiers.host().contains(key(2))) << "it is used again";
  EXPECT_EQ(tiers.blocks->moved().loaded_bytes, kFormat.bytes);
  EXPECT_TRUE(tiers.get(2));
  EXPECT_EQ(tiers.blocks->moved().loaded_bytes, kFormat.bytes) << "from host memory";
  EXPECT_EQ(tiers.blocks->moved().dropped_stores, 0);
  EXPECT_EQ(tiers.blocks->take_written_below().size(), 8u);
}

TEST(TieredBlocks, ARestartFindsAllOfIt) {
  Tiers tiers(10);
  tiers.put(0, 10);
  EXPECT_TRUE(tiers.written_below(10));
  tiers.open(10);
  EXPECT_EQ(tiers.host().count(), 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(tiers.get(i));
  EXPECT_EQ(tiers.host().count(), 10);
}

// The store below host memory hangs. Its queue stays limited, and host memory continues to work.
TEST(TieredBlocks, WhoeverIsBehindIsNotWaitedFor) {
  TestRedis redis;
  redis.mood = TestRedis::Mood::silent;
  Tiers tiers(4, redis, 200);
  for (int i = 0; i < 40; i += 2) tiers.put(i, 2);
  EXPECT_TRUE(tiers.get(38) && tiers.get(39));
  EXPECT_TRUE(eventually([&] { return tiers.blocks->moved().dropped_stores == 40; }));
  EXPECT_EQ(tiers.blocks->moved().stored_blocks, 0);
  EXPECT_FALSE(tiers.blocks->moved().off);
  EXPECT_EQ(tiers.get(0).error().code, ErrorCode::unavailable);
}

// touch() of a prompt that is already queued or stored adds nothing to the queue.
TEST(TieredBlocks, PromptsThatComeAgainDriveNoneOutThatWait) {
  auto below = std::make_unique<BadDisk>();
  BadDisk& disk = *below;
  Tiers tiers(8, std::move(below));
  tiers.put(0, 2);
  EXPECT_TRUE(eventually([&] { return disk.begun == 1; }));
  tiers.put(2, 2);
  tiers.put(4, 4);
  for (int i = 0; i < 5; ++i) tiers.blocks->touch(keys(4, 4));
  disk.may_write = true;
  EXPECT_TRUE(eventually([&] { return disk.count() == 8; }));
  EXPECT_EQ(tiers.blocks->moved().dropped_stores, 0);
}

TEST(TieredBlocks, WhatIsBeingWrittenWhenTheDiskTurnsOffIsNotThere) {
  auto below = std::make_unique<BadDisk>();
  BadDisk& disk = *below;
  Tiers tiers(8, std::move(below));
  tiers.put(0, 2);
  EXPECT_TRUE(eventually([&] { return disk.begun == 1; }));
  EXPECT_EQ(tiers.get(7).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(tiers.blocks->moved().off);
  disk.may_write = true;
  EXPECT_TRUE(eventually([&] { return disk.written == 1 && disk.count() == 0; }));
}

TEST(TieredBlocks, AStoreIsAskedOnlyForWhatHostMemoryLacks) {
  TestRedis redis;
  Tiers one(4, redis), other(4, redis);
  EXPECT_TRUE(other.blocks->must_look_up());
  one.put(0, 4);
  EXPECT_TRUE(one.written_below(4));
  EXPECT_EQ(other.blocks->contains(keys(0, 4)), std::vector<bool>(4, false));
  other.put(0, 1);
  other.blocks->look_up(keys(0, 5));
  EXPECT_EQ(other.blocks->contains(keys(0, 5)), (std::vector<bool>{1, 1, 1, 1, 0}));
  EXPECT_TRUE(other.get(3));
  EXPECT_TRUE(other.host().contains(key(3)));
  EXPECT_EQ(other.blocks->own(KvMedium::storage), nullptr) << "it is not this engine's alone";
}

TEST(TieredBlocks, AnErrorOfTheDiskLeavesHostMemory) {
  Tiers tiers(4);
  tiers.put(0, 4);
  EXPECT_TRUE(tiers.written_below(4));
  tiers.put(4, 4);
  EXPECT_TRUE(tiers.written_below(8));
  // Replaces each file with a folder.
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(tiers.folder.path()))
    if (entry.path().extension() == ".kv") files.push_back(entry.path());
  for (const fs::path& file : files) {
    fs::remove(file);
    fs::create_directory(file);
  }
  EXPECT_EQ(tiers.get(0).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(tiers.blocks->moved().off);
  EXPECT_EQ(tiers.blocks->contains(keys(0, 8)), (std::vector<bool>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(tiers.get(5));
  tiers.put(20, 4);
  EXPECT_TRUE(tiers.get(20));
  EXPECT_EQ(tiers.get(5).error().code, ErrorCode::not_found);
}

TEST(TieredBlocks, WhatIsSpoiltGoesFromBoth) {
  Tiers tiers(4);
  tiers.put(0, 4);
  EXPECT_TRUE(tiers.written_below(4));
  tiers.open(4);
  for (const auto& entry : fs::recursive_directory_iterator(tiers.folder.path()))
    if (entry.path().extension() == ".kv") fs::resize_file(entry.path(), 100);
  EXPECT_EQ(tiers.get(0).error().code, ErrorCode::corrupt);
  EXPECT_FALSE(tiers.blocks->contains(keys(0, 1))[0]);
  EXPECT_EQ(tiers.host().count(), 0);
  tiers.put(1, 1);
  tiers.blocks->remove(keys(1, 2));
  EXPECT_EQ(tiers.host().count(), 0);
}

TEST(TieredBlocks, ReadersSeeBlocksThatWanderOrNone) {
  Tiers tiers(8, 200);
  std::atomic<int> last = 0, seen = 0;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    for (int turn = 0; !done; ++turn) seen += tiers.get(std::max(0, last - turn % 50)).has_value();
  });
  while (last < 1500 || seen < 100 || tiers.blocks->moved().loaded_bytes == 0) {
    tiers.put(last, 2);
    last += 2;
  }
  done = true;
  reader.join();
  EXPECT_LE(tiers.host().count(), 8);
  EXPECT_LE(tiers.disk().count(), 200);
}

}  // namespace
}  // namespace octavo
