#include "fleet/index/held_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"

namespace octavo::fleet {
namespace {

constexpr int kBlock = 4;  // tokens

// Tokens of block i of prompt p.
std::vector<std::uint32_t> block_tokens(std::uint32_t p, std::uint32_t i) { return {p, i, p + i, 7}; }
std::uint64_t name(std::uint32_t p, std::uint32_t i, std::uint64_t seed = 0) {
  return seed + 1000 * p + i + 1;
}

CacheEvent stored(std::uint32_t p, std::uint32_t first, std::uint32_t count, std::uint64_t seed = 0) {
  CacheEvent event{.kind = CacheEvent::Kind::stored, .block_size = kBlock};
  if (first > 0) event.parent = name(p, first - 1, seed);
  for (std::uint32_t i = first; i < first + count; ++i) {
    event.blocks.push_back(name(p, i, seed));
    std::ranges::copy(block_tokens(p, i), std::back_inserter(event.tokens));
  }
  return event;
}

CacheEvent removed(std::uint32_t p, std::uint32_t i, std::uint64_t seed = 0) {
  return {.kind = CacheEvent::Kind::removed, .blocks = {name(p, i, seed)}};
}

std::vector<PrefixKey> keys_of(std::uint32_t p, std::uint32_t blocks) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < blocks; ++i)
    std::ranges::copy(block_tokens(p, i), std::back_inserter(tokens));
  std::vector<PrefixKey> keys;
  prefix_keys(first_key("", ""), tokens, kBlock, false, keys);
  return keys;
}

Hits hits(const HeldBlocks& held, EndpointId endpoint, std::uint32_t p, std::uint32_t blocks) {
  Overlap overlap;
  held.read().match(keys_of(p, blocks), overlap);
  return overlap.of(endpoint);
}

TEST(HeldBlocks, FollowsWhatEnginesTell) {
  HeldBlocks held(100);
  held.apply(1, stored(5, 0, 3));
  held.apply(2, stored(5, 0, 2, 777));  // an engine with different hashes
  held.apply(1, stored(5, 3, 1));
  EXPECT_EQ(hits(held, 1, 5, 10).device, 4U);
  EXPECT_EQ(hits(held, 2, 5, 10).device, 2U);
  held.apply(1, removed(5, 3));
  held.apply(2, removed(5, 1));  // has no effect, because only endpoint 1 has stored this hash
  EXPECT_EQ(hits(held, 1, 5, 10).device, 3U);
  EXPECT_EQ(hits(held, 2, 5, 10).device, 2U);
  held.apply(1, {.kind = CacheEvent::Kind::cleared});
  EXPECT_EQ(hits(held, 1, 5, 10), Hits{});
  EXPECT_EQ(held.blocks(1), 0U);
  EXPECT_EQ(held.blocks(2), 2U);
}

TEST(HeldBlocks, PassesOverWhatItCannotPlace) {
  HeldBlocks held(100);
  CacheEvent no_size = stored(6, 0, 1);
  no_size.block_size = 0;
  held.apply(0, no_size);
  held.apply(0, stored(5, 2, 1));  // ignored, because the block before it is unknown
  EXPECT_EQ(held.blocks(0), 0U);
  held.apply(0, stored(5, 0, 1));
  CacheEvent other_size = stored(6, 0, 1);
  other_size.block_size = 2;
  held.apply(0, other_size);
  CacheEvent short_of_tokens = stored(6, 0, 2);
  short_of_tokens.tokens.pop_back();
  held.apply(0, short_of_tokens);
  held.apply(0, no_size);
  held.apply(3, no_size);
  EXPECT_EQ(held.blocks(0), 1U);
}

TEST(HeldBlocks, OneGroupOfLayersThatSeesAllTokensSpeaksForThePrefix) {
  HeldBlocks held(100);
  CacheEvent window = stored(5, 0, 2);
  window.window = true;
  held.apply(0, window);
  EXPECT_EQ(held.blocks(0), 0U);
  CacheEvent full = stored(5, 0, 2);
  full.group = 1;
  held.apply(0, full);
  // ignored, because endpoint 0 now uses layer group 1, and this event is of layer group 0
  held.apply(0, removed(5, 1));
  EXPECT_EQ(hits(held, 0, 5, 2).device, 2U);
}

TEST(HeldBlocks, ABlockIsHeldUntilItsLastTierLosesIt) {
  HeldBlocks held(100);
  held.apply(0, stored(5, 0, 2));
  held.apply(0, {.kind = CacheEvent::Kind::stored, .tier = Tier::host, .blocks = {name(5, 1)}});
  held.apply(0, removed(5, 1));
  EXPECT_EQ(hits(held, 0, 5, 2), (Hits{.device = 1, .host = 1}));
  CacheEvent from_host = removed(5, 1);
  from_host.tier = Tier::host;
  held.apply(0, from_host);
  EXPECT_EQ(hits(held, 0, 5, 2), (Hits{.device = 1}));
}

TEST(HeldBlocks, KeepsToItsLimit) {
  HeldBlocks held(3);
  held.apply(0, stored(5, 0, 5));
  EXPECT_EQ(held.blocks(0), 3U);
  EXPECT_EQ(hits(held, 0, 5, 5).device, 3U);
  held.apply(1, stored(5, 0, 2));
  EXPECT_EQ(held.blocks(1), 2U);
}

TEST(HeldBlocks, AnEventMayNameABlockTwice) {
  HeldBlocks held(100);
  held.apply(0, stored(5, 0, 3));
  CacheEvent twice = removed(5, 2);
  twice.blocks.push_back(twice.blocks.front());
  held.apply(0, twice);
  EXPECT_EQ(held.blocks(0), 2U);
  EXPECT_EQ(hits(held, 0, 5, 3).device, 2U);
}

TEST(HeldBlocks, AdaptersAndSaltsShareNothing) {
  HeldBlocks held(100);
  CacheEvent adapted = stored(5, 0, 2), salted = stored(6, 0, 2);
  adapted.adapter = "a";
  salted.salt = "s";
  held.apply(0, adapted);
  held.apply(0, salted);
  EXPECT_EQ(hits(held, 0, 5, 2), Hits{});
  EXPECT_EQ(hits(held, 0, 6, 2), Hits{});
}

// Compares the index with the sets of blocks that engines have. Prompts are added and truncated at random.
TEST(HeldBlocks, AgreesWithANaiveModel) {
  constexpr std::uint32_t kPrompts = 6, kLength = 40;
  HeldBlocks held(10'000);
  // [endpoint][prompt]: number of cached blocks
  std::map<EndpointId, std::map<std::uint32_t, std::uint32_t>> truth;
  std::uint64_t draw = 0;
  const auto below = [&](std::uint64_t limit) {
    return static_cast<std::uint32_t>(random_bits(7, draw++) % limit);
  };
  for (int round = 0; round < 3000; ++round) {
    const EndpointId endpoint = below(3);
    const std::uint32_t p = below(kPrompts), length = below(kLength + 1);
    std::uint32_t& has = truth[endpoint][p];
    if (below(60) == 0) {
      held.apply(endpoint, {.kind = CacheEvent::Kind::cleared});
      truth[endpoint].clear();
    } else if (length > has) {
      held.apply(endpoint, stored(p, has, length - has, endpoint * 1'000'000));
      has = length;
    } else {
      for (; has > length; --has) held.apply(endpoint, removed(p, has - 1, endpoint * 1'000'000));
    }
    const std::uint32_t queried = below(kPrompts);
    for (EndpointId e = 0; e < 3; ++e)
      ASSERT_EQ(hits(held, e, queried, kLength).device, truth[e][queried]) << round;
  }
}

// Applies the same events to an index and to an index that was restored from dumps, and compares the
// results.
TEST(HeldBlocks, ARestoredIndexEqualsTheOneItWasTakenFrom) {
  constexpr std::uint32_t kPrompts = 6, kLength = 40;
  constexpr EndpointId kOffset = 5;  // endpoint e is e + 5 in the restored index
  std::uint64_t draw = 0;
  const auto below = [&](std::uint64_t limit) {
    return static_cast<std::uint32_t>(random_bits(11, draw++) % limit);
  };
  for (int run = 0; run < 20; ++run) {
    HeldBlocks from(10'000), to(10'000);
    std::map<EndpointId, std::map<std::uint32_t, std::uint32_t>> lengths;
    const auto event = [&](auto&& apply) {
      const EndpointId endpoint = below(3);
      const std::uint32_t p = below(kPrompts), length = below(kLength + 1);
      std::uint32_t& has = lengths[endpoint][p];
      const std::uint64_t seed = endpoint * 1'000'000;
      if (below(100) == 0) {
        apply(endpoint, CacheEvent{.kind = CacheEvent::Kind::cleared});
        lengths[endpoint].clear();
      } else if (length > has) {
        apply(endpoint, stored(p, has, length - has, seed));
        has = length;
        if (below(3) == 0)
          apply(endpoint, CacheEvent{.kind = CacheEvent::Kind::stored,
                                     .tier = below(2) == 0 ? Tier::host : Tier::disk,
                                     .blocks = {name(p, length - 1, seed)}});
      } else {
        for (; has > length; --has) apply(endpoint, removed(p, has - 1, seed));
      }
    };
    const auto same = [&] {
      for (EndpointId e = 0; e < 3; ++e) {
        EXPECT_EQ(from.blocks(e), to.blocks(e + kOffset));
        for (std::uint32_t p = 0; p < kPrompts; ++p)
          EXPECT_EQ(hits(from, e, p, kLength), hits(to, e + kOffset, p, kLength));
      }
    };
    const int before = static_cast<int>(below(300));
    for (int i = 0; i < before; ++i)
      event([&](EndpointId e, const CacheEvent& change) { from.apply(e, change); });
    for (EndpointId e = 0; e < 3; ++e) {
      to.apply(e + kOffset, stored(77, 0, 3));  // restore() removes earlier blocks of the endpoint
      const auto dump = from.dump(e);
      EXPECT_TRUE(dump || from.blocks(e) == 0);
      if (!dump) {
        to.clear(e + kOffset);
        continue;
      }
      const auto copy = read_held_dump(write_held_dump(*dump));
      ASSERT_EQ(copy.value(), *dump);
      ASSERT_TRUE(to.restore(e + kOffset, *copy));
    }
    same();
    for (int i = 0; i < 100; ++i)
      event([&](EndpointId e, const CacheEvent& change) {
        from.apply(e, change);
        to.apply(e + kOffset, change);
      });
    same();
  }
}

TEST(HeldBlocks, WhatIsRestoredFitsWhatIsThere) {
  HeldBlocks from(100), to(3);
  from.apply(0, stored(5, 0, 5));
  HeldDump dump = from.dump(0).value();
  EXPECT_TRUE(to.restore(1, dump));
  EXPECT_EQ(to.blocks(1), 3U) << "its limit";
  dump.block_size = kBlock + 1;
  EXPECT_TRUE(to.restore(1, dump)) << "the index has no other blocks";
  EXPECT_EQ(to.read().block_size(), kBlock + 1);
  EXPECT_FALSE(to.restore(2, from.dump(0).value())) << "blocks of another size";
  EXPECT_EQ(to.blocks(2), 0U);
}

TEST(HeldDump, WhatIsNoDumpIsRefused) {
  const HeldDump dump{.block_size = 16, .group = 1, .position = {5, 6}, .blocks = {{1, 2, 3}, {4, 5, 1}}};
  const std::string whole = write_held_dump(dump);
  ASSERT_EQ(read_held_dump(whole).value(), dump);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_held_dump(whole.substr(0, size))) << size;
  EXPECT_FALSE(read_held_dump(whole + "x"));
  std::string no_tier = whole;
  no_tier.back() = 0;
  EXPECT_FALSE(read_held_dump(no_tier));
  no_tier.back() = 8;
  EXPECT_FALSE(read_held_dump(no_tier));
}

// Lookups find unchanged blocks while another thread adds and removes blocks.
TEST(HeldBlocks, IsReadWhileItIsWritten) {
  HeldBlocks held(1000);
  held.apply(1, stored(5, 0, 40));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::uint32_t round = 0; round < 300; ++round) {
      held.apply(2, stored(5, 0, 40));
      held.apply(3, stored(6 + round % 7, 0, 20));
      for (std::uint32_t i = 40; i-- > 0;) held.apply(2, removed(5, i));
      round % 2 ? held.clear(3) : held.apply(3, {.kind = CacheEvent::Kind::cleared});
    }
    done = true;
  });
  const auto keys = keys_of(5, 40);
  Overlap overlap;
  bool last = false;
  while (!last) {
    last = done;
    const HeldBlocks::Reading reading = held.read();
    reading.match(keys, overlap);
    EXPECT_EQ(overlap.of(1).device, 40U);
    EXPECT_EQ(overlap.of(3).device, 0U);
    EXPECT_TRUE(reading.reports(1));
    EXPECT_EQ(reading.block_size(), kBlock);
  }
  writer.join();
  EXPECT_EQ(overlap.of(2).device, 0U);
}

TEST(HeldBlocks, AnEndpointWhoseEventsEndReportsNoMore) {
  HeldBlocks held(100);
  const CacheEvent stored{.kind = CacheEvent::Kind::stored, .blocks = {1}, .tokens = {1, 2}, .block_size = 2};
  held.apply(3, stored);
  EXPECT_EQ(held.size().reporting, 1);
  EXPECT_EQ(held.size().blocks, 1);
  held.apply(3, {.kind = CacheEvent::Kind::cleared});
  EXPECT_TRUE(held.read().reports(3)) << "it says that it holds nothing";
  held.apply(3, stored);
  held.apply(3, {.kind = CacheEvent::Kind::lost});
  EXPECT_FALSE(held.read().reports(3));
  EXPECT_EQ(held.size().reporting, 0);
  EXPECT_EQ(held.size().blocks, 0);
}

}  // namespace
}  // namespace octavo::fleet
