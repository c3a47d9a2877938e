#include "fleet/index/block_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"

namespace octavo::fleet {
namespace {

std::vector<PrefixKey> chain(PrefixKey seed, std::size_t length) {
  std::vector<PrefixKey> keys;
  for (std::size_t i = 0; i < length; ++i) keys.push_back(random_bits(seed, i));
  return keys;
}

void store(BlockIndex& index, EndpointId endpoint, std::span<const PrefixKey> keys,
           Tier tier = Tier::device) {
  for (const PrefixKey key : keys) ASSERT_TRUE(index.store(endpoint, key, tier));
}

TEST(BlockIndex, FindsHowMuchEachHolds) {
  BlockIndex index(1000);
  const auto keys = chain(1, 100);
  store(index, 3, std::span(keys).first(40));
  store(index, 7, std::span(keys).first(97));
  Overlap overlap;
  index.match(keys, overlap);
  EXPECT_EQ(overlap.prompt_blocks, 100U);
  EXPECT_EQ(overlap.of(3).device, 40U);
  EXPECT_EQ(overlap.of(7).device, 97U);
  EXPECT_EQ(overlap.of(5).blocks(), 0U);
  index.match(chain(2, 10), overlap);
  EXPECT_TRUE(overlap.holders.empty());
  EXPECT_EQ(overlap.of(7).blocks(), 0U);
}

TEST(BlockIndex, CountsABlockInItsBestTier) {
  BlockIndex index(1000);
  const auto keys = chain(1, 10);
  store(index, 0, std::span(keys).first(4));
  store(index, 0, std::span(keys).first(8), Tier::host);
  store(index, 0, std::span(keys), Tier::disk);
  Overlap overlap;
  index.match(keys, overlap);
  EXPECT_EQ(overlap.of(0), (Hits{4, 4, 2}));
  EXPECT_TRUE(index.remove(0, keys[3]));
  index.match(keys, overlap);
  EXPECT_EQ(overlap.of(0), (Hits{3, 5, 2}));
  EXPECT_FALSE(index.remove(0, keys[3])) << "twice";
}

TEST(BlockIndex, RefusesWhatIsBeyondItsLimit) {
  BlockIndex index(2);
  EXPECT_TRUE(index.store(0, 1));
  EXPECT_TRUE(index.store(1, 1));
  EXPECT_FALSE(index.store(2, 1));
  EXPECT_FALSE(index.store(0, 2));
  EXPECT_TRUE(index.store(0, 1)) << "there already";
  EXPECT_TRUE(index.remove(0, 1));
  EXPECT_TRUE(index.store(2, 1));
  EXPECT_EQ(index.entries(), 2U);
}

// Compares the index with sets of keys. Endpoints store prompts from the beginning and evict them from the
// end, as engines do.
TEST(BlockIndex, AgreesWithANaiveModel) {
  constexpr EndpointId kEndpoints = 5;
  std::vector<std::vector<PrefixKey>> prompts;
  for (PrefixKey p = 0; p < 12; ++p) {  // prompts 4 and above start with blocks of the prompt p % 4
    auto keys = chain(p, 150);
    if (p >= 4)
      std::ranges::copy_n(prompts[p % 4].begin(), static_cast<std::ptrdiff_t>(10 * p), keys.begin());
    prompts.push_back(std::move(keys));
  }
  BlockIndex index(100'000);
  std::vector<std::map<PrefixKey, int>> truth(kEndpoints);  // key -> tiers
  std::uint64_t draw = 0;
  const auto below = [&](std::uint64_t limit) { return random_bits(99, draw++) % limit; };
  Overlap overlap;
  for (int round = 0; round < 4000; ++round) {
    const auto endpoint = static_cast<EndpointId>(below(kEndpoints));
    const auto& prompt = prompts[below(prompts.size())];
    auto& held = truth[endpoint];
    const auto length = below(prompt.size() + 1);
    if (below(50) == 0) {
      index.clear(endpoint);
      held.clear();
    } else if (below(2) == 0) {
      for (std::size_t i = 0; i < length; ++i) {
        index.store(endpoint, prompt[i]);
        held[prompt[i]] = 1;
      }
    } else {  // removes the blocks after `length` that the endpoint's other prompts do not need
      std::set<PrefixKey> needed;
      for (const auto& other : prompts)
        for (std::size_t i = 0; &other != &prompt && i < other.size() && held.contains(other[i]); ++i)
          needed.insert(other[i]);
      for (std::size_t i = prompt.size(); i-- > length;) {
        if (needed.contains(prompt[i])) continue;
        EXPECT_EQ(index.remove(endpoint, prompt[i]), held.erase(prompt[i]) > 0);
      }
    }
    const auto& requested = prompts[below(prompts.size())];
    index.match(requested, overlap);
    std::size_t entries = 0;
    for (EndpointId e = 0; e < kEndpoints; ++e) {
      std::uint32_t depth = 0;
      while (depth < requested.size() && truth[e].contains(requested[depth])) ++depth;
      ASSERT_EQ(overlap.of(e).device, depth) << "round " << round << " endpoint " << e;
      ASSERT_EQ(std::ranges::count(overlap.holders, e), depth > 0 ? 1 : 0);
      entries += truth[e].size();
    }
    ASSERT_EQ(index.entries(), entries);
  }
}

}  // namespace
}  // namespace octavo::fleet
