#include "engine/loop/prefix_tree.h"

#include <gtest/gtest.h>

#include <array>

namespace octavo {
namespace {

bool operator==(const PrefixNode& a, const PrefixNode& b) {
  return a.parent == b.parent && a.blocks == b.blocks && a.used == b.used && a.shared == b.shared;
}

class PrefixTreeTest : public testing::Test {
 protected:
  // Adds a block with one user, as a child of the content `parent`.
  BlockId add(PrefixId parent) {
    const std::array<std::int32_t, 1> token = {static_cast<std::int32_t>(++key_)};
    const BlockId block = pool_.allocate(0);
    pool_.remember(block, {.group = 0, .key = {key_, 0}, .extra = {}, .parent = parent, .tokens = token},
                   pool_.new_prefix());
    return block;
  }
  PrefixId behind(BlockId block) const { return pool_.prefix(block); }

  BlockPool pool_{16, 1, 1};
  std::uint64_t key_ = 0;
};

TEST_F(PrefixTreeTest, NothingIsCached) {
  pool_.allocate(0);  // a block in use that is not full
  EXPECT_TRUE(prefix_tree(pool_, 8).nodes.empty());
}

TEST_F(PrefixTreeTest, BlocksWithoutAForkAreOneNode) {
  const BlockId a = add(kEmptyPrefix), b = add(behind(a)), c = add(behind(b));
  const BlockId left = add(behind(c)), right = add(behind(c));
  const BlockId alone = add(kEmptyPrefix);
  add(behind(right));
  for (const BlockId block : {a, b, c}) pool_.acquire(block);
  pool_.release(left);
  pool_.release(alone);
  const PrefixTree tree = prefix_tree(pool_, 8);
  ASSERT_EQ(tree.nodes.size(), 4U);
  EXPECT_TRUE((tree.nodes[0] == PrefixNode{.parent = -1, .blocks = 3, .used = 3, .shared = 3}));
  EXPECT_TRUE((tree.nodes[1] == PrefixNode{.parent = 0, .blocks = 1}));
  EXPECT_TRUE((tree.nodes[2] == PrefixNode{.parent = 0, .blocks = 2, .used = 2}));
  EXPECT_TRUE((tree.nodes[3] == PrefixNode{.parent = -1, .blocks = 1}));
  EXPECT_EQ(tree.left_out, 0);
}

TEST_F(PrefixTreeTest, TheHeaviestNodesStayWithWhatTheyFollow) {
  add(kEmptyPrefix);
  const BlockId root = add(kEmptyPrefix);
  add(behind(root));
  add(behind(add(behind(root))));
  const PrefixTree tree = prefix_tree(pool_, 2);
  ASSERT_EQ(tree.nodes.size(), 2U);
  EXPECT_TRUE((tree.nodes[0] == PrefixNode{.parent = -1, .blocks = 1, .used = 1}));
  EXPECT_TRUE((tree.nodes[1] == PrefixNode{.parent = 0, .blocks = 2, .used = 2}));
  EXPECT_EQ(tree.left_out, 2);
}

TEST_F(PrefixTreeTest, ATextWhoseBeginningHasGoneBeginsLater) {
  BlockPool pool(2, 1, 1);
  const std::array<std::int32_t, 1> token = {7};
  const BlockId block = pool.allocate(0);
  const PrefixId missing = pool.new_prefix();
  pool.remember(block, {.group = 0, .key = {1, 0}, .extra = {}, .parent = missing, .tokens = token},
                pool.new_prefix());
  const PrefixTree tree = prefix_tree(pool, 8);
  ASSERT_EQ(tree.nodes.size(), 1U);
  EXPECT_EQ(tree.nodes[0].parent, -1);
}

TEST_F(PrefixTreeTest, TheSameContentCountsOnce) {
  const BlockId first = add(kEmptyPrefix);
  const std::array<std::int32_t, 1> token = {1};
  const BlockId twin = pool_.allocate(0);
  pool_.remember(twin, {.group = 0, .key = {1, 0}, .extra = {}, .parent = kEmptyPrefix, .tokens = token},
                 behind(first));
  pool_.release(first);
  const PrefixTree tree = prefix_tree(pool_, 8);
  ASSERT_EQ(tree.nodes.size(), 1U);
  EXPECT_TRUE((tree.nodes[0] == PrefixNode{.parent = -1, .blocks = 1, .used = 1}));
}

}  // namespace
}  // namespace octavo
