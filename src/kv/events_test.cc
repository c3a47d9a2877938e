#include "kv/events.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "kv/block_pool.h"

namespace octavo {
namespace {

constexpr int kSize = 2;  // tokens per block

struct Mirror {
  std::set<std::uint64_t> keys;

  void read(KvEventLog& log) {
    log.take(1 << 20, [&](const KvEvent& event, std::span<const std::int32_t> tokens) {
      if (event.kind == KvEvent::Kind::cleared) keys.clear();
      if (event.kind == KvEvent::Kind::removed) {
        EXPECT_EQ(keys.erase(event.key.low), 1u);
      }
      if (event.kind == KvEvent::Kind::stored) {
        EXPECT_TRUE(keys.insert(event.key.low).second);
        EXPECT_EQ(tokens[0], static_cast<std::int32_t>(event.key.low));
        EXPECT_TRUE(event.parent_key == Hash128{} || keys.contains(event.parent_key.low));
      }
    });
  }
};

// A pool in which block i of chain c has the key 100 * c + i + 1.
struct Chains {
  Chains(int blocks, KvEventLog& log) : pool(blocks, kSize, 1) { pool.log_to(log); }

  void compute(int chain, int length) {
    std::vector<BlockId> mine;
    PrefixId tip = kEmptyPrefix;
    for (int i = 0; i < length && pool.free() > 0; ++i) {
      const auto key = static_cast<std::uint64_t>(100 * chain + i + 1);
      const std::int32_t tokens[kSize] = {static_cast<std::int32_t>(key), 0};
      const BlockContent content{0, {key, 1}, {}, tip, tokens, i == 0 ? Hash128{} : Hash128{key - 1, 1}};
      const BlockId twin = pool.find(content);
      const PrefixId prefix = twin == kNoBlock ? pool.new_prefix() : pool.prefix(twin);
      mine.push_back(pool.allocate(0));
      pool.remember(mine.back(), content, prefix);
      contents[key] = content.parent;
      tip = prefix;
    }
    for (auto block = mine.rbegin(); block != mine.rend(); ++block) pool.release(*block);
  }

  std::set<std::uint64_t> keys() const {
    std::set<std::uint64_t> found;
    for (const auto& [key, parent] : contents) {
      const std::int32_t tokens[kSize] = {static_cast<std::int32_t>(key), 0};
      if (pool.find({0, {key, 1}, {}, kAnyPrefix, tokens}) != kNoBlock) found.insert(key);
    }
    return found;
  }

  BlockPool pool;
  std::map<std::uint64_t, PrefixId> contents;
};

TEST(KvEvents, AReaderKnowsExactlyWhatTheCacheHolds) {
  std::mt19937 random(7);
  KvEventLog log(32, kSize);
  Chains chains(32, log);
  Mirror mirror;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 200 == 0) {
      chains.pool.reset();
    } else {
      chains.compute(static_cast<int>(random() % 6), 1 + static_cast<int>(random() % 12));
    }
    log.flush();
    mirror.read(log);
    ASSERT_EQ(mirror.keys, chains.keys()) << "step " << step;
  }
}

TEST(KvEvents, AReaderThatIsLateLearnsEverythingAnew) {
  KvEventLog log(32, kSize);
  Chains chains(32, log);
  for (int chain = 0; !log.losing(); ++chain) chains.compute(chain % 60, 12);
  chains.pool.log_all();
  EXPECT_TRUE(log.losing());
  chains.compute(3, 12);
  log.flush();
  Mirror mirror;
  mirror.read(log);
  chains.pool.log_all();
  EXPECT_FALSE(log.losing());
  log.flush();
  mirror.read(log);
  EXPECT_EQ(mirror.keys, chains.keys());
}

TEST(KvEvents, ALogThatBeginsLateHasAllContents) {
  KvEventLog log(32, kSize);
  Chains chains(32, log);
  log.lose();
  for (int chain = 0; chain < 3; ++chain) chains.compute(chain, 4);
  chains.pool.log_all();
  log.flush();
  Mirror mirror;
  mirror.read(log);
  EXPECT_EQ(mirror.keys, chains.keys());
}

TEST(KvEvents, WaitEndsWithTheLog) {
  KvEventLog log(4, kSize);
  int read = 0;
  std::thread reader([&] {
    while (log.wait()) log.take(3, [&](const KvEvent&, std::span<const std::int32_t>) { ++read; });
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(log.write({.kind = KvEvent::Kind::cleared}));
    if (i % 7 == 0) log.flush();
  }
  log.flush();
  log.close();
  reader.join();
  EXPECT_EQ(read, 1000);
}

}  // namespace
}  // namespace octavo
