#include "fleet/index/prefix_keys.h"

#include <gtest/gtest.h>

#include <numeric>

namespace octavo::fleet {
namespace {

std::vector<std::uint32_t> counting(std::size_t count) {
  std::vector<std::uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0U);
  return tokens;
}

TEST(PrefixKeys, AreThoseOfLlmD) {
  EXPECT_EQ(first_key("m", ""), 0xba2e567083a2b2e8U);
  std::vector<PrefixKey> keys;
  prefix_keys(first_key("m", ""), counting(80), 64, true, keys);
  EXPECT_EQ(keys, (std::vector<PrefixKey>{0x9504d79d090c075dU, 0x2801fd2736f952e9U}));
}

TEST(PrefixKeys, APartialBlockCountsWhereItIsAskedFor) {
  std::vector<PrefixKey> keys;
  prefix_keys(1, counting(33), 16, false, keys);
  EXPECT_EQ(keys.size(), 2U);
  prefix_keys(1, counting(33), 16, true, keys);
  EXPECT_EQ(keys.size(), 3U);
  prefix_keys(1, {}, 16, true, keys);
  EXPECT_TRUE(keys.empty());
}

TEST(PrefixKeys, CoverModelSaltAndEverythingBefore) {
  EXPECT_NE(first_key("m", ""), first_key("m", "salt"));
  std::vector<PrefixKey> a, b;
  auto tokens = counting(64);
  prefix_keys(1, tokens, 16, false, a);
  tokens[0] = 99;
  prefix_keys(1, tokens, 16, false, b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NE(a[i], b[i]) << i;
}

}  // namespace
}  // namespace octavo::fleet
