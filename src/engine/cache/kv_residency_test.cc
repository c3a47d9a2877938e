#include "engine/cache/kv_residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

std::int64_t observed(const Histogram& histogram) {
  return std::accumulate(histogram.counts().begin(), histogram.counts().end(), std::int64_t{0});
}

constexpr int kBlockTokens = 16;

struct Pool {
  explicit Pool(int blocks, double sample)
      : pool(blocks, kBlockTokens, 1), residency(sample, [this] { return clock_us; }) {
    pool.observe(residency);
  }

  BlockId store(int text) {
    const BlockId block = pool.allocate(0);
    pool.remember(block, content(text), pool.new_prefix());
    pool.release(block);
    return block;
  }
  BlockContent content(int text) {
    tokens.assign(kBlockTokens, text);
    return {.key = {static_cast<std::uint64_t>(text), 1}, .tokens = tokens};
  }
  void use(BlockId block) {
    pool.acquire(block);
    pool.release(block);
  }

  std::int64_t clock_us = 1'000'000;
  std::vector<std::int32_t> tokens;
  BlockPool pool;
  KvResidency residency;
};

TEST(KvResidency, TimesAreThoseOfTheBlocksLife) {
  Pool p(1, 1);
  const BlockId block = p.store(1);
  for (const std::int64_t after_us : {1'000'000, 2'000'000, 3'000'000}) {
    p.clock_us += after_us;
    p.use(block);
  }
  p.clock_us += 4'000'000;
  p.store(2);  // evicts the block of text 1
  const KvResidencyStats& stats = p.residency.stats();
  EXPECT_EQ(observed(stats.lifetime), 1);
  EXPECT_DOUBLE_EQ(stats.lifetime.sum(), 10);
  EXPECT_EQ(observed(stats.idle_before_evict), 1);
  EXPECT_DOUBLE_EQ(stats.idle_before_evict.sum(), 4);
  EXPECT_EQ(observed(stats.reuse_gap), 2);
  EXPECT_DOUBLE_EQ(stats.reuse_gap.sum(), 5);
}

TEST(KvResidency, OnlyTheLatestUsesCount) {
  Pool p(1, 1);
  const BlockId block = p.store(1);
  for (int i = 0; i < 10; ++i) {
    p.clock_us += 1'000'000;
    p.use(block);
  }
  p.store(2);
  EXPECT_EQ(observed(p.residency.stats().reuse_gap), 3);
  EXPECT_DOUBLE_EQ(p.residency.stats().idle_before_evict.sum(), 0);
}

TEST(KvResidency, BlocksWithoutContentAndAResetAreNoEvictions) {
  Pool p(1, 1);
  p.pool.release(p.pool.allocate(0));
  p.store(1);
  p.pool.reset();
  p.store(2);
  EXPECT_EQ(observed(p.residency.stats().lifetime), 0);
  p.store(3);
  EXPECT_EQ(observed(p.residency.stats().lifetime), 1);
}

TEST(KvResidency, TheSampleHasItsShareOfTheBlocks) {
  Pool p(1, 0.25);
  for (int i = 0; i < 4000; ++i) p.store(i);
  EXPECT_THAT(observed(p.residency.stats().lifetime), testing::AllOf(testing::Gt(900), testing::Lt(1100)));
}

}  // namespace
}  // namespace octavo
