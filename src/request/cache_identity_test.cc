#include "request/cache_identity.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

TEST(CacheIdentity, TheSameTextInAnotherPartIsAnotherIdentity) {
  const std::vector<CacheIdentity> all = {{"a", "", ""},  {"", "a", ""},   {"", "", "a"},   {"ab", "", ""},
                                          {"a", "b", ""}, {"a", "", "b"},  {"", "ab", ""},  {"", "a", "b"},
                                          {"", "", "ab"}, {"a", "b", "c"}, {"ab", "c", ""}, {"a", "bc", ""}};
  for (const CacheIdentity& a : all)
    for (const CacheIdentity& b : all) EXPECT_EQ(a.digest() == b.digest(), a == b);
  for (const CacheIdentity& a : all) EXPECT_NE(a.digest(), Hash128{});
  EXPECT_EQ(CacheIdentity{}.digest(), Hash128{});
}

}  // namespace
}  // namespace octavo
