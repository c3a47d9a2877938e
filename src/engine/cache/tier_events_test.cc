#include "engine/cache/tier_events.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "transfer/kv_pieces.h"

namespace octavo {
namespace {

constexpr int kTierBlockSize = 2;

Hash128 key_of(std::uint64_t number) { return {.low = number, .high = 7}; }    // key in the tier
Hash128 name_of(std::uint64_t number) { return {.low = number, .high = 99}; }  // key in the cache

class FakeTier final : public KvConnector {
 public:
  std::optional<int> matched(const KvPrompt&) override { return 0; }
  bool worth_loading(int, std::span<const Hash128>, double) override { return false; }
  void load(LoadTask) override {}
  bool wants(const KvPrompt&) override { return false; }
  std::optional<KvTransferParams> store(const KvPrompt&, StoreTask, std::int64_t) override { return {}; }
  std::vector<std::uint64_t> take_stored(std::int64_t) override { return {}; }
  bool give_way() override { return false; }
  void add_stats(EngineStats&) const override {}
  std::vector<bool> held(KvMedium medium, std::span<const Hash128> keys) const override {
    std::vector<bool> held_pieces;
    for (const Hash128& key : keys)
      if (medium == KvMedium::host) {
        held_pieces.push_back(key == key_of(key.low) && on_host.contains(key.low));
      } else {
        held_pieces.push_back(key == key_of(key.low) ? blocks.contains(key.low)
                                                     : second_group.contains(key.low));
      }
    return held_pieces;
  }
  std::vector<Hash128> take_removed(KvMedium medium) override {
    return std::exchange(medium == KvMedium::host ? removed_from_host : removed, {});
  }
  std::vector<Hash128> take_written_below() override { return std::exchange(written, {}); }

  void lose(std::uint64_t number) {
    blocks.erase(number);
    removed.push_back(key_of(number));
  }

  std::set<std::uint64_t> blocks, second_group, on_host;
  std::vector<Hash128> removed, removed_from_host, written;
};

class TierEventsTest : public ::testing::Test {
 protected:
  void pass_by(std::vector<std::uint64_t> numbers) {
    PrefixHold hold;
    hold.identity = {.low = 5, .high = 5};
    std::vector<Hash128> keys;
    for (const std::uint64_t number : numbers) {
      keys.push_back(key_of(number));
      hold.keys.push_back(name_of(number));
      hold.tokens.insert(hold.tokens.end(), kTierBlockSize, static_cast<TokenId>(number));
    }
    events.report_stored(tier, hold, keys);
  }

  // Returns the events since the last call as block numbers. Removed blocks are negative.
  std::vector<std::int64_t> reported() {
    std::vector<std::int64_t> numbers;
    log.flush();
    log.take(1000, [&](const KvEvent& event, std::span<const std::int32_t> tokens) {
      if (event.kind == KvEvent::Kind::cleared) return;
      EXPECT_EQ(event.medium, medium);
      EXPECT_EQ(event.key.high, 99u);
      const auto number = static_cast<std::int64_t>(event.key.low);
      const bool stored = event.kind == KvEvent::Kind::stored;
      if (stored) {
        EXPECT_EQ(tokens[1], number);
        EXPECT_EQ(event.extra.low, 5u);
      }
      numbers.push_back((stored ? number : -number) + 100 * event.group);
      last = event;
    });
    return numbers;
  }

  using Numbers = std::vector<std::int64_t>;
  FakeTier tier;
  KvEventLog log{16, kTierBlockSize};
  TierEvents events{&log, 2};
  KvEvent last;
  KvMedium medium = KvMedium::storage;
};

TEST_F(TierEventsTest, WhatComesIsToldOnceAndWhatGoesIfItWasTold) {
  tier.blocks = {1, 3};
  pass_by({1, 2, 3});
  EXPECT_EQ(reported(), (Numbers{1, 3}));
  EXPECT_EQ(last.parent_key, name_of(2));
  tier.blocks.insert(2);
  pass_by({1, 2, 3});
  EXPECT_EQ(reported(), Numbers{2});
  tier.lose(3);
  tier.lose(4);  // block 4 was never reported
  events.report_changes(tier);
  EXPECT_EQ(reported(), Numbers{-3});
  pass_by({1, 2, 3});
  EXPECT_EQ(reported(), Numbers{});
}

TEST_F(TierEventsTest, BlocksOfEachGroupAreTold) {
  tier.blocks = {1, 2};
  tier.second_group = {2};
  pass_by({1, 2});
  EXPECT_EQ(reported(), (Numbers{1, 2, 102}));
  EXPECT_EQ(last.parent_key, name_of(1));
  tier.second_group.clear();
  tier.removed = {piece_key(key_of(2), 1)};
  events.report_changes(tier);
  EXPECT_EQ(reported(), Numbers{98});
  pass_by({1, 2});
  EXPECT_EQ(reported(), Numbers{});
}

TEST_F(TierEventsTest, WhatWentAndCameAgainIsStillThere) {
  tier.blocks = {1};
  pass_by({1});
  tier.lose(1);
  tier.blocks = {1};
  events.report_changes(tier);
  EXPECT_EQ(reported(), Numbers{1});
}

TEST_F(TierEventsTest, AfterAllIsClearedItIsToldAnew) {
  tier.blocks = {1, 2};
  pass_by({1, 2});
  log.write({.kind = KvEvent::Kind::cleared});
  EXPECT_EQ(reported(), (Numbers{1, 2}));
  tier.lose(2);
  events.report_changes(tier);
  pass_by({1, 2});
  EXPECT_EQ(reported(), Numbers{1});
}

// Host memory stores blocks first and writes them to disk. When host memory evicts a block, the block is
// still on disk, which was reported when the block was written.
TEST_F(TierEventsTest, WhatIsWrittenFromHostMemoryToTheDiskIsTold) {
  medium = KvMedium::host;
  tier.on_host = {1, 2};
  pass_by({1, 2});
  EXPECT_EQ(reported(), (Numbers{1, 2}));
  medium = KvMedium::storage;
  tier.blocks = {1, 2};
  tier.written = {key_of(1), key_of(2), key_of(3)};
  events.report_changes(tier);
  EXPECT_EQ(reported(), (Numbers{1, 2}));
  EXPECT_EQ(last.parent_key, name_of(1));
  pass_by({1, 2});
  EXPECT_EQ(reported(), Numbers{}) << "once";
  medium = KvMedium::host;
  tier.on_host = {2};
  tier.removed_from_host = {key_of(1)};
  events.report_changes(tier);
  EXPECT_EQ(reported(), Numbers{-1});
  medium = KvMedium::storage;
  tier.lose(2);
  events.report_changes(tier);
  EXPECT_EQ(reported(), Numbers{-2});
}

TEST_F(TierEventsTest, NobodyAsksAndNothingIsKept) {
  TierEvents silent(nullptr, 2);
  tier.blocks = {1};
  tier.lose(2);
  silent.report_changes(tier);
  EXPECT_TRUE(tier.removed.empty());
}

}  // namespace
}  // namespace octavo
