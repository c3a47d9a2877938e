#include "kernels/shared_prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

using Tables = std::vector<std::vector<std::int32_t>>;

// Returns the table of a sequence that begins with the first `common` blocks of `with`.
std::vector<std::int32_t> table_like(const std::vector<std::int32_t>& with, std::size_t common,
                                     std::size_t blocks, std::int32_t first_own) {
  std::vector<std::int32_t> table(blocks);
  std::iota(table.begin(), table.end(), first_own);
  std::copy_n(with.begin(), common, table.begin());
  return table;
}

SharedPrefixes found(const Tables& tables, int block_size, int piece_tokens) {
  SharedPrefixes prefixes(block_size, piece_tokens, tables.size());
  for (std::size_t s = 0; s < tables.size(); ++s) prefixes.add(static_cast<std::int32_t>(s), tables[s]);
  prefixes.find();
  return prefixes;
}

// Returns the sequences of each prefix, sorted, with its number of pieces.
std::map<std::vector<std::int32_t>, std::int32_t> groups_of(const SharedPrefixes& prefixes) {
  std::map<std::vector<std::int32_t>, std::int32_t> groups;
  for (const SharedPrefix& prefix : prefixes.all()) {
    std::vector<std::int32_t> sequences(prefixes.sequences(prefix).begin(), prefixes.sequences(prefix).end());
    std::ranges::sort(sequences);
    EXPECT_FALSE(groups.contains(sequences));
    groups[sequences] = prefix.pieces;
  }
  return groups;
}

TEST(SharedPrefixes, NestedPrefixesAreFound) {
  const std::vector<std::int32_t> a = table_like({}, 0, 60, 1000);
  const Tables tables{a, table_like(a, 20, 40, 2000), table_like({}, 0, 60, 3000),
                      table_like(a, 41, 50, 4000), table_like(a, 8, 9, 5000)};
  const std::map<std::vector<std::int32_t>, std::int32_t> expected{
      {{0, 1, 3, 4}, 1}, {{0, 1, 3}, 2}, {{0, 3}, 5}};
  EXPECT_EQ(groups_of(found(tables, 16, 128)), expected);
}

// A longer prefix in blocks is not longer in pieces.
TEST(SharedPrefixes, CountsOnlyFullPieces) {
  const std::vector<std::int32_t> a = table_like({}, 0, 60, 1000);
  const Tables tables{a, table_like(a, 17, 40, 2000), table_like(a, 23, 40, 3000),
                      table_like(a, 7, 40, 4000)};
  const std::map<std::vector<std::int32_t>, std::int32_t> expected{{{0, 1, 2}, 2}};
  EXPECT_EQ(groups_of(found(tables, 16, 128)), expected);
}

TEST(SharedPrefixes, BlocksMayHaveSeveralPieces) {
  const std::vector<std::int32_t> a = table_like({}, 0, 4, 1000);
  const std::map<std::vector<std::int32_t>, std::int32_t> expected{{{0, 1}, 4}};
  EXPECT_EQ(groups_of(found({a, table_like(a, 2, 3, 2000)}, 256, 128)), expected);
}

TEST(SharedPrefixes, EqualTablesAndEmptyOnes) {
  const std::vector<std::int32_t> a = table_like({}, 0, 8, 1000);
  const std::map<std::vector<std::int32_t>, std::int32_t> expected{{{1, 3, 4}, 1}};
  EXPECT_EQ(groups_of(found({{}, a, {}, a, a}, 16, 128)), expected);
  EXPECT_TRUE(found({}, 16, 128).all().empty());
}

// Compares with a search over all pairs.
TEST(SharedPrefixes, FindsWhatPairsHaveInCommon) {
  TestRandom random(23);
  for (int round = 0; round < 50; ++round) {
    Tables tables;
    for (int s = random.integer(0, 20); s > 0; --s) {
      const std::int32_t first_own =
          1000 * random.integer(1, 1000) + static_cast<std::int32_t>(tables.size());
      const auto blocks = static_cast<std::size_t>(random.integer(0, 40));
      const Tables none{{}};
      const auto& with =
          tables.empty()
              ? none.front()
              : tables[static_cast<std::size_t>(random.integer(0, static_cast<int>(tables.size()) - 1))];
      const std::size_t common =
          std::min({blocks, with.size(), static_cast<std::size_t>(random.integer(0, 40))});
      tables.push_back(table_like(with, common, blocks, first_own));
    }
    const SharedPrefixes prefixes = found(tables, 16, 64);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> of_pairs;
    for (const SharedPrefix& prefix : prefixes.all())
      for (const std::int32_t a : prefixes.sequences(prefix))
        for (const std::int32_t b : prefixes.sequences(prefix)) {
          EXPECT_LT((of_pairs[{a, b}]), prefix.pieces);  // shorter prefixes come first
          of_pairs[{a, b}] = prefix.pieces;
        }
    for (std::size_t a = 0; a < tables.size(); ++a)
      for (std::size_t b = 0; b < tables.size(); ++b) {
        if (a == b) continue;
        const auto alike = std::ranges::mismatch(tables[a], tables[b]).in1 - tables[a].begin();
        EXPECT_EQ((of_pairs[{static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)}]), alike / 4);
      }
  }
}

}  // namespace
}  // namespace octavo
