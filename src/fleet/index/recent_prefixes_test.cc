#include "fleet/index/recent_prefixes.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace octavo::fleet {
namespace {

std::vector<PrefixKey> chain(PrefixKey seed, std::size_t length) {
  std::vector<PrefixKey> keys;
  for (std::size_t i = 0; i < length; ++i) keys.push_back(random_bits(seed, i));
  return keys;
}

std::uint32_t depth(const RecentPrefixes& recent, EndpointId endpoint, std::span<const PrefixKey> keys) {
  Overlap overlap;
  recent.match(keys, overlap);
  return overlap.of(endpoint).device;
}

TEST(RecentPrefixes, ForgetsWhatWasSentLongestAgoFromItsEnd) {
  RecentPrefixes recent(10, 0);
  const auto a = chain(1, 6), b = chain(2, 6);
  recent.sent(0, a, 1);
  recent.sent(0, b, 2);
  EXPECT_EQ(depth(recent, 0, b), 6U);
  EXPECT_EQ(depth(recent, 0, a), 4U);
  EXPECT_EQ(recent.blocks(0), 10U);
  recent.sent(0, a, 3);
  EXPECT_EQ(depth(recent, 0, a), 6U);
  EXPECT_EQ(depth(recent, 0, b), 4U);
}

TEST(RecentPrefixes, ExpiresWhatIsNotSentAgain) {
  RecentPrefixes recent(100, 1000);
  const auto a = chain(1, 6);
  recent.sent(0, a, 0);
  recent.sent(0, std::span(a).first(2), 500);
  recent.expire(999);
  EXPECT_EQ(depth(recent, 0, a), 6U);
  recent.expire(1000);
  EXPECT_EQ(depth(recent, 0, a), 2U);
  recent.expire(1500);
  EXPECT_EQ(depth(recent, 0, a), 0U);
}

TEST(RecentPrefixes, EndpointsAreApart) {
  RecentPrefixes recent(100, 0);
  const auto a = chain(1, 6);
  recent.sent(0, a, 0);
  recent.sent(1, a, 0);
  recent.clear(0);
  EXPECT_EQ(depth(recent, 0, a), 0U);
  EXPECT_EQ(depth(recent, 1, a), 6U);
  recent.limit(1, 4);
  EXPECT_EQ(depth(recent, 1, a), 4U);
}

TEST(RecentPrefixes, TakesTheBeginningOfAPromptLongerThanItsLimit) {
  RecentPrefixes recent(4, 0);
  const auto a = chain(1, 9);
  recent.sent(0, a, 0);
  EXPECT_EQ(depth(recent, 0, a), 4U);
}

}  // namespace
}  // namespace octavo::fleet
