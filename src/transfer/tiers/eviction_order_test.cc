#include "transfer/tiers/eviction_order.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace octavo {
namespace {

Hash128 key(std::uint64_t i) { return {.low = i, .high = i * 0x9E3779B97F4A7C15}; }

class EvictionOrders : public testing::TestWithParam<EvictionPolicy> {};

// evict() returns every block exactly once.
TEST_P(EvictionOrders, NameEachBlockThatIsThereOnce) {
  constexpr std::size_t kMost = 20;
  const auto order = make_eviction_order(GetParam(), kMost);
  std::set<std::uint64_t> stored;
  std::mt19937 draws(1);
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::uint64_t i = draws() % 60;
    if (draws() % 10 == 0) {
      EXPECT_EQ(order->remove(key(i)), stored.erase(i) == 1);
    } else if (stored.contains(i)) {
      order->use(key(i));
    } else {
      if (stored.size() == kMost) {
        ASSERT_EQ(stored.erase(order->evict().low), 1u);
      }
      order->add(key(i));
      stored.insert(i);
      if (draws() % 2 == 0) order->use(key(i));
    }
    ASSERT_EQ(order->size(), stored.size());
    for (std::uint64_t each = 0; each < 60; ++each)
      ASSERT_EQ(order->contains(key(each)), stored.contains(each));
  }
  while (order->size() > 0) EXPECT_EQ(stored.erase(order->evict().low), 1u);
  EXPECT_TRUE(stored.empty());
}

INSTANTIATE_TEST_SUITE_P(All, EvictionOrders, testing::Values(EvictionPolicy::lru, EvictionPolicy::arc),
                         [](const auto& param) {
                           return std::string(kEvictionPolicyNames[static_cast<std::size_t>(param.param)]);
                         });

// A tier that counts hits: blocks that are stored when a prompt uses them.
struct Tier {
  static constexpr std::size_t kMost = 100;
  std::unique_ptr<EvictionOrder> order;
  int hits = 0;

  explicit Tier(EvictionPolicy policy) : order(make_eviction_order(policy, kMost)) {}
  void use(std::uint64_t i) {
    if (order->contains(key(i))) {
      ++hits;
    } else {
      if (order->size() == kMost) order->evict();
      order->add(key(i));
    }
    order->use(key(i));
  }
};

TEST(Arc, PromptsThatNeverComeAgainDoNotDriveOutWhatManyBeginWith) {
  Tier lru(EvictionPolicy::lru), arc(EvictionPolicy::arc);
  for (Tier* tier : {&lru, &arc}) {
    std::uint64_t fresh = 1000;
    for (int round = 0; round < 50; ++round) {
      for (std::uint64_t i = 0; i < (round == 0 ? 120 : 60); ++i) tier->use(i % 60);
      for (int i = 0; i < 150; ++i) tier->use(fresh++);
    }
  }
  EXPECT_EQ(lru.hits, 60);
  EXPECT_EQ(arc.hits, 50 * 60);
}

TEST(Arc, LearnsThatWhatIsNewComesAgain) {
  Tier lru(EvictionPolicy::lru), arc(EvictionPolicy::arc);
  for (Tier* tier : {&lru, &arc}) {
    for (int again = 0; again < 3; ++again)
      for (std::uint64_t i = 0; i < 80; ++i) tier->use(i);
    tier->hits = 0;
    // Each block is used again 40 iterations later.
    for (std::uint64_t i = 1000; i < 9000; ++i) {
      tier->use(i);
      tier->use(i - 40);
    }
  }
  EXPECT_GT(arc.hits, lru.hits * 95 / 100) << "what many had is not asked for any more";
}

}  // namespace
}  // namespace octavo
