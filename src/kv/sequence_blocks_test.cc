#include "kv/sequence_blocks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

constexpr int kSize = 4;  // tokens per block

// A sequence with the tokens 0, 1, 2, .. and a key for each full block.
struct History {
  explicit History(int length, std::uint64_t key = 100) {
    tokens.resize(static_cast<std::size_t>(length));
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int i = 0; i < length / kSize; ++i) keys.push_back({key + static_cast<std::uint64_t>(i), 0});
  }
  operator BlockHistory() const { return {tokens, keys, extra}; }
  std::vector<std::int32_t> tokens;
  std::vector<Hash128> keys;
  Hash128 extra;
};

int cached_blocks(const KvCache& cache, const BlockHistory& history) {
  PrefixMatch match;
  find_prefix(cache, history, match);
  return match.blocks;
}

void drop(KvCache& cache, SequenceBlocks& sequence) {
  std::vector<BlockId> blocks;
  sequence.give_up(blocks);
  for (const BlockId b : blocks) cache.pool.release(b);
}

SequenceBlocks compute(KvCache& cache, const History& history, int computed) {
  SequenceBlocks sequence(cache, 1000);
  EXPECT_TRUE(sequence.reserve(computed));
  sequence.publish(computed, history);
  return sequence;
}

TEST(SequenceBlocks, TakesWhatIsMissingOrNothing) {
  KvCache cache(3, kSize, {CacheGroup{}});
  SequenceBlocks sequence(cache, 100);
  EXPECT_TRUE(sequence.reserve(5));
  EXPECT_EQ(sequence.table(0).size(), 2u);
  EXPECT_EQ(sequence.missing(8), 0);
  EXPECT_FALSE(sequence.reserve(13));
  EXPECT_EQ(sequence.table(0).size(), 2u);
  EXPECT_EQ(cache.pool.free(), 1);
  EXPECT_TRUE(sequence.reserve(12));
  drop(cache, sequence);
  EXPECT_EQ(cache.pool.free(), 3);
}

TEST(SequenceBlocks, SharesFullBlocksWhileStillGrowing) {
  KvCache cache(16, kSize, {CacheGroup{}});
  const History history(11);
  SequenceBlocks first = compute(cache, history, 9);
  PrefixMatch match;
  find_prefix(cache, history, match);
  EXPECT_EQ(match.blocks, 2);
  EXPECT_EQ(match.unreferenced, 0);
  SequenceBlocks second(cache, 100);
  second.adopt(match);
  EXPECT_EQ(second.table(0)[1], first.table(0)[1]);
  EXPECT_EQ(cache.pool.references(first.table(0)[0]), 2);
  drop(cache, first);
  EXPECT_EQ(cache.pool.used(), 2);
  drop(cache, second);
  EXPECT_EQ(cached_blocks(cache, history), 2);
  cache.pool.check();
}

TEST(SequenceBlocks, LeavesATokenToCompute) {
  KvCache cache(16, kSize, {CacheGroup{}});
  SequenceBlocks sequence = compute(cache, History(8), 8);
  EXPECT_EQ(cached_blocks(cache, History(9)), 2);
  EXPECT_EQ(cached_blocks(cache, History(8)), 1);
  EXPECT_EQ(cached_blocks(cache, History(1)), 0);
}

TEST(SequenceBlocks, IsProvenTokenByTokenFromTheStart) {
  KvCache cache(16, kSize, {CacheGroup{}});
  History history(12);
  for (Hash128& key : history.keys) key = {1, 1};  // all hashes collide
  SequenceBlocks sequence = compute(cache, history, 12);
  EXPECT_EQ(cached_blocks(cache, history), 2);
  History other = history;
  other.tokens[1] = 77;  // blocks 1 and 2 have equal tokens and keys, but a different prefix
  SequenceBlocks second = compute(cache, other, 4);
  EXPECT_EQ(cached_blocks(cache, other), 1);
  other.extra = {5, 5};
  EXPECT_EQ(cached_blocks(cache, other), 0);
}

TEST(SequenceBlocks, EvictsTailsFirst) {
  KvCache cache(3, kSize, {CacheGroup{}});
  const History history(13);
  SequenceBlocks sequence = compute(cache, history, 12);
  drop(cache, sequence);
  for (int left = 2; left >= 0; --left) {
    cache.pool.allocate(0);
    EXPECT_EQ(cached_blocks(cache, history), left);
  }
}

TEST(SequenceBlocks, FreesWhatLeftTheWindow) {
  KvCache cache(64, kSize, {CacheGroup{6}});
  const History history(40);
  SequenceBlocks sequence = compute(cache, history, 20);
  sequence.leave_window(20);  // position 20 attends to 15 .. 20
  EXPECT_EQ(sequence.table(0)[2], kNoBlock);
  EXPECT_NE(sequence.table(0)[3], kNoBlock);
  EXPECT_EQ(cache.pool.used(), 2);
  drop(cache, sequence);
  EXPECT_EQ(cache.pool.used(), 0);
}

TEST(SequenceBlocks, NeedsOnlyTheWindowForAHit) {
  KvCache cache(5, kSize, {CacheGroup{6}});
  const History history(40);
  SequenceBlocks sequence = compute(cache, history, 20);
  sequence.leave_window(20);
  std::vector<BlockId> others;
  while (cache.pool.free() > 0) others.push_back(cache.pool.allocate(0));  // evicts blocks 0 .. 2
  PrefixMatch match;
  find_prefix(cache, history, match);
  EXPECT_EQ(match.blocks, 5);
  EXPECT_EQ(match.tables[0][2], kNoBlock);
  EXPECT_EQ(match.tables[0][3], sequence.table(0)[3]);
  EXPECT_EQ(match.lent, 2);
}

TEST(SequenceBlocks, AgreesOnOnePrefixAmongGroups) {
  KvCache cache(64, kSize, {CacheGroup{}, CacheGroup{5}});
  const History history(41);
  SequenceBlocks sequence = compute(cache, history, 40);
  EXPECT_EQ(cached_blocks(cache, history), 10);
  sequence.leave_window(40);
  // Evicts block 9 of the window group. Blocks 0 .. 8 of the group are evicted earlier, so only later
  // blocks can match.
  std::vector<BlockId> blocks;
  sequence.give_up(blocks);
  for (const BlockId b : blocks) cache.pool.release(b);
  while (cache.pool.free() > cache.pool.cached()) cache.pool.allocate(0);
  // these are the window blocks that were freed first: 0 .. 8
  for (int i = 0; i < 9; ++i) cache.pool.allocate(0);
  EXPECT_EQ(cached_blocks(cache, history), 10) << "block 9 of the window group is all that position 40 sees";
  cache.pool.allocate(0);
  EXPECT_EQ(cached_blocks(cache, history), 0);
}

TEST(SequenceBlocks, GrowthIsBoundedByTheWindow) {
  KvCache cache(64, kSize, {CacheGroup{}, CacheGroup{8}});
  EXPECT_EQ(cache.peak_blocks(0, 100, 4), 25);
  EXPECT_EQ(cache.peak_blocks(1, 100, 4), 4);
  EXPECT_EQ(cache.peak_blocks(1, 8, 4), 2);
  SequenceBlocks sequence(cache, 100);
  EXPECT_EQ(sequence.growth(100, 4), 29);
  ASSERT_TRUE(sequence.reserve(12));
  EXPECT_EQ(sequence.growth(100, 4), 22 + 1);
  EXPECT_EQ(sequence.growth(12, 4), 0);
}

}  // namespace
}  // namespace octavo
