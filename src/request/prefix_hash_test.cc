#include "request/prefix_hash.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::vector<Hash128> keys(const PrefixHasher& hasher, std::vector<TokenId> tokens, Hash128 salt = {}) {
  std::vector<Hash128> result;
  hasher.extend(tokens, salt, result);
  return result;
}

TEST(PrefixHasher, NamesFullBlocksByEverythingBeforeTheirEnd) {
  const PrefixHasher hasher({.seed = 1}, 2);
  const auto a = keys(hasher, {1, 2, 3, 4, 5});
  const auto b = keys(hasher, {1, 2, 3, 4, 6, 7});
  const auto c = keys(hasher, {9, 2, 3, 4});
  ASSERT_EQ(a.size(), 2u);
  ASSERT_EQ(b.size(), 3u);
  EXPECT_EQ(a[1], b[1]);
  EXPECT_NE(a[0], c[0]);
  EXPECT_NE(a[1], c[1]) << "equal tokens, another past";
}

TEST(PrefixHasher, ExtendsWhatIsThere) {
  const PrefixHasher hasher({.seed = 1}, 2);
  const std::vector<TokenId> tokens{1, 2, 3, 4, 5, 6};
  std::vector<Hash128> grown;
  for (std::size_t n = 0; n <= tokens.size(); ++n) hasher.extend(std::span(tokens).first(n), {}, grown);
  EXPECT_EQ(grown, keys(hasher, tokens));
}

TEST(PrefixHasher, KeepsSeedsSaltsAndAlgorithmsApart) {
  for (const HashAlgorithm algorithm : {HashAlgorithm::xxh3_128, HashAlgorithm::sha256}) {
    const PrefixHasher one({.algorithm = algorithm, .seed = 1}, 2),
        two({.algorithm = algorithm, .seed = 2}, 2);
    EXPECT_NE(keys(one, {1, 2}), keys(two, {1, 2}));
    EXPECT_NE(keys(one, {1, 2}), keys(one, {1, 2}, {1, 0}));
    EXPECT_EQ(keys(one, {1, 2}, {1, 0}), keys(one, {1, 2}, {1, 0}));
  }
  EXPECT_NE(keys(PrefixHasher({.algorithm = HashAlgorithm::sha256}, 2), {1, 2}),
            keys(PrefixHasher({}, 2), {1, 2}));
}

// A salt whose bytes equal those of a key and a block must give a different hash.
TEST(PrefixHasher, DoesNotConfuseSaltAndBlock) {
  const PrefixHasher hasher({.seed = 3}, 4);
  const auto a = keys(hasher, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto b = keys(hasher, {5, 6, 7, 8}, a[0]);
  EXPECT_NE(a[1], b[0]);
}

}  // namespace
}  // namespace octavo
