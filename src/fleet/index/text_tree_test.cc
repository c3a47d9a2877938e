#include "fleet/index/text_tree.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace octavo::fleet {
namespace {

std::size_t matched(const TextTree& tree, std::string_view text, EndpointId endpoint) {
  TextMatch found;
  tree.match(text, found);
  return found.of(endpoint);
}

constexpr std::size_t kEnough = 1 << 20;

TEST(TextTree, FindsThePrefixOfEach) {
  TextTree tree(kEnough);
  tree.insert("hello world", 0);
  tree.insert("hello there", 1);
  EXPECT_EQ(matched(tree, "hello world!", 0), 11U);
  EXPECT_EQ(matched(tree, "hello world!", 1), 6U);
  EXPECT_EQ(matched(tree, "help", 0), 3U);
  EXPECT_EQ(matched(tree, "x", 0), 0U);
  EXPECT_EQ(matched(tree, "", 0), 0U);
}

TEST(TextTree, ForgetsTheOldestTextFromItsEnd) {
  const auto insert = [](TextTree& tree) {
    tree.insert("aaaaaaaa", 0);
    tree.insert("aaaabbbb", 0);
    tree.insert("cccccccccc", 0);
  };
  TextTree all(kEnough);
  insert(all);
  TextTree tree(all.bytes(0) - 1);
  insert(tree);
  EXPECT_EQ(matched(tree, "aaaaaaaa", 0), 4U) << "the end of the first one is gone";
  EXPECT_EQ(matched(tree, "aaaabbbb", 0), 8U);
  EXPECT_EQ(matched(tree, "cccccccccc", 0), 10U);
  tree.insert("aaaaaaaa", 0);
  EXPECT_EQ(matched(tree, "aaaaaaaa", 0), 8U);
  EXPECT_EQ(matched(tree, "aaaabbbb", 0), 4U) << "the oldest now";
}

TEST(TextTree, ClearTakesOneEndpointOnly) {
  TextTree tree(kEnough);
  tree.insert("abcdef", 0);
  tree.insert("abcxyz", 1);
  tree.clear(0);
  EXPECT_EQ(matched(tree, "abcdef", 0), 0U);
  EXPECT_EQ(matched(tree, "abcdef", 1), 3U);
  tree.clear(1);
  EXPECT_EQ(tree.nodes(), 1U) << "the root";
}

// The prompt grows by one byte at each insertion, so each node has an edge of one byte.
TEST(TextTree, DeepTreesAreFine) {
  TextTree tree(4 * kEnough);
  const std::string text(5000, 'a');
  for (std::size_t i = 1; i <= text.size(); ++i) tree.insert(std::string_view(text).substr(0, i), 0);
  EXPECT_EQ(matched(tree, text, 0), text.size());
  tree.clear(0);
  EXPECT_EQ(tree.nodes(), 1U);
}

// Compares the tree with a list of all texts, without evictions.
TEST(TextTree, AgreesWithANaiveModel) {
  std::uint64_t draw = 0;
  const auto below = [&](std::uint64_t limit) { return random_bits(5, draw++) % limit; };
  const auto text = [&] {
    std::string s(below(12), 'a');
    for (char& c : s) c = static_cast<char>('a' + below(2));
    return s;
  };
  TextTree tree(kEnough);
  std::vector<std::set<std::string>> truth(3);
  for (int round = 0; round < 3000; ++round) {
    const auto endpoint = static_cast<EndpointId>(below(3));
    if (below(100) == 0) {
      tree.clear(endpoint);
      truth[endpoint].clear();
    } else {
      const std::string sent = text();
      tree.insert(sent, endpoint);
      truth[endpoint].insert(sent);
    }
    const std::string requested = text();
    for (EndpointId e = 0; e < 3; ++e) {
      std::size_t longest = 0;
      std::set<std::string> prefixes;  // each distinct prefix needs at least one byte
      for (const std::string& s : truth[e]) {
        for (std::size_t i = 1; i <= s.size(); ++i) prefixes.insert(s.substr(0, i));
        const auto end = std::mismatch(s.begin(), s.end(), requested.begin(), requested.end()).first;
        longest = std::max(longest, static_cast<std::size_t>(end - s.begin()));
      }
      ASSERT_EQ(matched(tree, requested, e), longest) << requested;
      ASSERT_GE(tree.bytes(e), prefixes.size());
      ASSERT_EQ(tree.bytes(e) > 0, !prefixes.empty());
    }
  }
}

TEST(TextTree, StaysWithinItsLimit) {
  constexpr std::size_t kMax = 4000;
  TextTree tree(kMax);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string text(random_bits(1, i) % 300, 'x');
    for (std::size_t j = 0; j < text.size(); ++j)
      text[j] = static_cast<char>('a' + random_bits(2, i, j / 40) % 3);
    tree.insert(text, static_cast<EndpointId>(i % 2));
    ASSERT_LE(tree.bytes(0), kMax);
    ASSERT_LE(tree.bytes(1), kMax);
    ASSERT_EQ(matched(tree, text, static_cast<EndpointId>(i % 2)), text.size()) << "it is the newest";
  }
  for (const EndpointId endpoint : {0U, 1U}) tree.clear(endpoint);
  EXPECT_EQ(tree.nodes(), 1U);
  EXPECT_EQ(tree.bytes(0) + tree.bytes(1), 0U);
}

// Compares the tree's count with the bytes from the allocator. Short texts have the largest overhead.
TEST(TextTree, ItsLimitIsOfMemory) {
  constexpr std::size_t kMax = 8 << 20;
  const auto allocated = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = allocated();
  TextTree tree(kMax);
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    std::string text;
    for (std::uint64_t j = 0; j < 20; ++j)
      text += static_cast<char>('!' + random_bits(3, i, j) % 90);
    tree.insert(text, 0);
  }
  EXPECT_LE(allocated() - before, kMax);
  EXPECT_GT(tree.bytes(0), kMax - 1000);
}

}  // namespace
}  // namespace octavo::fleet
