#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "base/random.h"

namespace octavo {
namespace {

using Tokens = std::array<std::int32_t, 2>;

BlockContent content(const Tokens& tokens, std::uint64_t key = 1, PrefixId parent = kEmptyPrefix) {
  return {.group = 0, .key = {key, 0}, .extra = {}, .parent = parent, .tokens = tokens};
}

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(3, 2, 1);
  std::vector<bool> seen(3, false);
  for (int i = 0; i < 3; ++i) {
    const BlockId b = pool.allocate(0);
    EXPECT_FALSE(seen[static_cast<std::size_t>(b)]);
    seen[static_cast<std::size_t>(b)] = true;
  }
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.used(), 3);
  pool.check();
}

TEST(BlockPool, RemembersWhatItHeldUntilTheBlockIsTaken) {
  BlockPool pool(2, 2, 1);
  const Tokens tokens{5, 6};
  const BlockId b = pool.allocate(0);
  pool.remember(b, content(tokens), pool.new_prefix());
  EXPECT_EQ(pool.find(content(tokens)), b) << "shared while in use";
  pool.release(b);
  EXPECT_EQ(pool.cached(), 1);
  EXPECT_EQ(pool.find(content(tokens)), b);
  EXPECT_NE(pool.allocate(0), b) << "the blank block goes first";
  EXPECT_EQ(pool.find(content(tokens)), b);
  EXPECT_EQ(pool.allocate(0), b);
  EXPECT_EQ(pool.find(content(tokens)), kNoBlock);
  pool.check();
}

TEST(BlockPool, TakesTheLeastRecentlyUsedFirst) {
  BlockPool pool(3, 2, 1);
  const std::array<Tokens, 3> tokens{{{0, 0}, {1, 1}, {2, 2}}};
  std::vector<BlockId> blocks;
  for (std::uint64_t i = 0; i < 3; ++i) {
    blocks.push_back(pool.allocate(0));
    pool.remember(blocks.back(), content(tokens[i], i), pool.new_prefix());
  }
  for (const BlockId b : blocks) pool.release(b);
  pool.acquire(blocks[0]);  // this block is now the newest one
  pool.release(blocks[0]);
  EXPECT_EQ(pool.allocate(0), blocks[1]);
  EXPECT_EQ(pool.allocate(0), blocks[2]);
  EXPECT_EQ(pool.allocate(0), blocks[0]);
}

TEST(BlockPool, DoesNotBelieveEqualHashes) {
  BlockPool pool(8, 2, 2);
  const Tokens a{1, 2}, b{3, 4};
  const BlockId block = pool.allocate(0);
  const PrefixId prefix = pool.new_prefix();
  pool.remember(block, content(a), prefix);
  EXPECT_EQ(pool.find(content(b)), kNoBlock) << "other tokens";
  EXPECT_EQ(pool.find(content(a, 1, prefix)), kNoBlock) << "another past";
  EXPECT_EQ(pool.find(content(a, 1, kAnyPrefix)), block);
  BlockContent salted = content(a);
  salted.extra = {7, 0};
  EXPECT_EQ(pool.find(salted), kNoBlock) << "another identity";
  BlockContent other_layers = content(a);
  other_layers.group = 1;
  EXPECT_EQ(pool.find(other_layers), kNoBlock) << "another group";

  const BlockId second = pool.allocate(0);
  pool.remember(second, content(b), pool.new_prefix());
  EXPECT_EQ(pool.find(content(a)), block);
  EXPECT_EQ(pool.find(content(b)), second);
  pool.check();
}

TEST(BlockPool, KeepsTwoBlocksOfOneContent) {
  BlockPool pool(2, 2, 1);
  const Tokens tokens{1, 2};
  const PrefixId prefix = pool.new_prefix();
  const BlockId first = pool.allocate(0), second = pool.allocate(0);
  pool.remember(first, content(tokens), prefix);
  pool.remember(second, content(tokens), prefix);
  pool.release(first);
  pool.release(second);
  EXPECT_EQ(pool.allocate(0), first);
  EXPECT_EQ(pool.find(content(tokens)), second);
  pool.check();
}

TEST(BlockPool, CountsUsersBeyondTheFirst) {
  BlockPool pool(2, 2, 2);
  const BlockId block = pool.allocate(1);
  pool.acquire(block);
  pool.acquire(block);
  EXPECT_EQ(pool.extra_references(1), 2);
  EXPECT_EQ(pool.extra_references(0), 0);
  pool.release(block);
  pool.release(block);
  EXPECT_EQ(pool.extra_references(1), 0);
  EXPECT_EQ(pool.used(), 1);
}

TEST(BlockPool, ForgetsEverythingOnReset) {
  BlockPool pool(2, 2, 1);
  const Tokens tokens{1, 2};
  const BlockId used = pool.allocate(0), freed = pool.allocate(0);
  pool.remember(used, content(tokens, 1), pool.new_prefix());
  pool.remember(freed, content(tokens, 2), pool.new_prefix());
  pool.release(freed);
  pool.reset();
  EXPECT_EQ(pool.find(content(tokens, 1)), kNoBlock);
  EXPECT_EQ(pool.find(content(tokens, 2)), kNoBlock);
  EXPECT_EQ(pool.cached(), 0);
  pool.check();
}

TEST(BlockPoolDeathTest, RefusesADoubleRelease) {
  BlockPool pool(1, 2, 1);
  const BlockId block = pool.allocate(0);
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "it has no users");
}

// Compares the pool with a simple model, under random operations.
TEST(BlockPool, AgreesWithASimpleModel) {
  constexpr int kBlocks = 12;
  struct Model {
    int users = 0;
    int name = -1;  // the tokens of the block are {name, name}
  };
  std::vector<Model> model(kBlocks);
  std::deque<BlockId> lru;  // free blocks with content, oldest first
  BlockPool pool(kBlocks, 2, 1);
  std::uint64_t draw = 0;
  const auto choose = [&](int below) {
    return static_cast<int>(random_bits(4, draw++) % static_cast<std::uint64_t>(below));
  };
  for (int step = 0; step < 20000; ++step) {
    const auto pick = static_cast<BlockId>(choose(kBlocks));
    Model& m = model[static_cast<std::size_t>(pick)];
    const int name = choose(20);
    const Tokens tokens{name, name};
    switch (choose(4)) {
      case 0:
        if (pool.free() > 0) {
          const bool blank = pool.free() > pool.cached();
          const BlockId b = pool.allocate(0);
          Model& taken = model[static_cast<std::size_t>(b)];
          ASSERT_EQ(taken.users, 0);
          ASSERT_EQ(taken.name == -1, blank);
          if (!blank) {
            ASSERT_EQ(b, lru.front());
            lru.pop_front();
          }
          taken = {1, -1};
        }
        break;
      case 1:
        if (m.users > 0) {
          pool.release(pick);
          if (--m.users == 0 && m.name >= 0) lru.push_back(pick);
        }
        break;
      case 2:
        if (m.users > 0 && m.name < 0) {
          pool.remember(pick, content(tokens, static_cast<std::uint64_t>(name % 3)), pool.new_prefix());
          m.name = name;
        }
        break;
      default:
        const BlockId b = pool.find(content(tokens, static_cast<std::uint64_t>(name % 3)));
        const bool expected = std::ranges::any_of(model, [&](const Model& x) { return x.name == name; });
        ASSERT_EQ(b != kNoBlock, expected);
        if (!expected) break;
        ASSERT_EQ(model[static_cast<std::size_t>(b)].name, name);
        pool.acquire(b);
        if (model[static_cast<std::size_t>(b)].users++ == 0) std::erase(lru, b);
    }
    pool.check();
    ASSERT_EQ(pool.cached(), static_cast<int>(lru.size()));
  }
}

}  // namespace
}  // namespace octavo
