#include "transfer/kv_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace octavo {
namespace {

BlockFormat format_of(std::vector<int> windows, int state_pieces) {
  return {.fingerprint = "m", .block_size = 16, .bytes = 64, .windows = std::move(windows), .state_pieces = state_pieces};
}

std::vector<Hash128> some_keys(int count) {
  std::vector<Hash128> keys;
  for (int i = 0; i < count; ++i) keys.push_back({static_cast<std::uint64_t>(i), 5});
  return keys;
}

bool all_stored(const std::vector<bool>& known) { return std::ranges::find(known, false) == known.end(); }

TEST(KvPieces, WhatIsMissingIsTheEndOfAll) {
  for (const BlockFormat& format : {format_of({0}, 0), format_of({0, 40}, 0), format_of({40, 0, 300}, 3), format_of({}, 2)})
    for (int end = 0; end < 30; ++end)
      for (int begin = 0; begin <= end; ++begin) {
        const std::vector<Hash128> keys = some_keys(30);
        const auto all = piece_keys(pieces_of(format, 0, end), keys), some = piece_keys(pieces_of(format, begin, end), keys);
        ASSERT_LE(some.size(), all.size());
        EXPECT_TRUE(std::equal(some.rbegin(), some.rend(), all.rbegin()));
        EXPECT_EQ(std::set(all.begin(), all.end(), [](Hash128 a, Hash128 b) {
                    return std::pair(a.low, a.high) < std::pair(b.low, b.high);
                  }).size(), all.size());
      }
}

// Compares the result with a search over all lengths.
TEST(KvPieces, TheLongestPrefixHasAllItsPieces) {
  std::mt19937 random(7);
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    const BlockFormat formats[] = {format_of({0}, 0), format_of({0, 40}, 0), format_of({40, 0, 300}, 2), format_of({}, 1), format_of({64}, 0)};
    const BlockFormat& format = formats[round % 5];
    const std::vector<Hash128> keys = some_keys(20);
    std::vector<Hash128> lost;
    for (int i = 0; i < static_cast<int>(random() % 4); ++i) {
      const std::vector<KvPiece> pieces = pieces_of(format, 0, 1 + static_cast<int>(random() % 20));
      lost.push_back(piece_keys(std::span(&pieces[random() % pieces.size()], 1), keys)[0]);
    }
    const KnownPieces known = [&](std::span<const Hash128> names) {
      std::vector<bool> stored;
      for (const Hash128& name : names) stored.push_back(std::ranges::find(lost, name) == lost.end());
      return stored;
    };
    int longest = 20;
    while (longest > 0 && !all_stored(known(piece_keys(pieces_of(format, 0, longest), keys)))) --longest;
    EXPECT_EQ(longest_prefix(format, keys, known), longest);
    found += longest > 0 && longest < 20;
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace octavo
