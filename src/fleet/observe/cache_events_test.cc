#include "fleet/observe/cache_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"

namespace octavo::fleet {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Writes msgpack with the same bytes as Python's msgspec.
std::string text(std::string_view value) {
  CHECK(value.size() < 32);
  return std::string(1, static_cast<char>(0xa0 + value.size())).append(value);
}
std::string list(std::initializer_list<std::string> items) {
  std::string out(1, static_cast<char>(0x90 + items.size()));
  for (const std::string& item : items) out += item;
  return out;
}
std::string fields(std::initializer_list<std::string> names_and_values) {
  std::string out(1, static_cast<char>(0x80 + names_and_values.size() / 2));
  for (const std::string& item : names_and_values) out += item;
  return out;
}
std::string small(int value) { return std::string(1, static_cast<char>(value)); }
const std::string kNil = "\xc0";
const std::string kTime = "\xcb\x41\xda\0\0\0\0\0\0"s;

std::vector<CacheEvent> read(const std::string& batch) {
  auto found = read_cache_batch(batch);
  EXPECT_TRUE(found) << found.error().message;
  return found.value_or(CacheBatch()).events;
}

TEST(CacheEvents, ABatchNamesTheRankThatPublishesIt) {
  EXPECT_EQ(read_cache_batch(list({kTime, list({}), small(3)}))->rank, 3);
  EXPECT_EQ(read_cache_batch(list({kTime, list({}), kNil}))->rank, std::nullopt);
  EXPECT_EQ(read_cache_batch(list({kTime, list({})}))->rank, std::nullopt);
  const std::string map = fields({text("data_parallel_rank"), small(2), text("events"), list({})});
  EXPECT_EQ(read_cache_batch(map)->rank, 2);
  EXPECT_EQ(read_cache_batch(fields({text("data_parallel_rank"), kNil, text("events"), list({})}))->rank,
            std::nullopt);
}

// Hashes may have any length, and memory tiers may be in upper or lower case, as in llm-d.
TEST(CacheEvents, FormsOfOtherPublishers) {
  const auto bytes = [](std::string_view value) {
    return std::string("\xc4") + static_cast<char>(value.size()) + std::string(value);
  };
  const auto stored = [&](const std::string& hash, const std::string& medium) {
    const auto events =
        read(list({kTime, list({list({text("BlockStored"), list({hash}), kNil, list({small(5), small(6)}),
                                      small(2), kNil, medium})})}));
    CHECK(events.size() == 1);
    return events[0];
  };
  EXPECT_THAT(stored(bytes("\1\2"s), kNil).blocks, ElementsAre(0x102U));
  EXPECT_THAT(stored(bytes("\xff\0\0\0\0\0\0\1\2"s), kNil).blocks, ElementsAre(0x102U));
  EXPECT_FALSE(read_cache_batch(list({kTime, list({list({text("BlockRemoved"), list({bytes("")})})})})));
  for (const char* device : {"GPU", "gpu", "", "hbm"})
    EXPECT_EQ(stored(small(1), text(device)).tier, Tier::device) << device;
  for (const char* host : {"CPU", "cpu", "CPU_PINNED", "cpu_tier1"})
    EXPECT_EQ(stored(small(1), text(host)).tier, Tier::host) << host;
  for (const char* disk : {"DISK", "storage", "nixl"})
    EXPECT_EQ(stored(small(1), text(disk)).tier, Tier::disk) << disk;
}

TEST(CacheEvents, OfArrays) {
  const auto events = read(
      list({kTime,
            list({list({text("BlockStored"), list({small(1), small(-2)}), small(9),
                        list({small(5), small(6), small(7), small(8)}), small(2)}),
                  list({text("BlockRemoved"), list({small(1)}), text("CPU")}),
                  list({text("SomethingNew"), small(1), list({kNil})}), list({text("AllBlocksCleared")})}),
            kNil}));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].kind, CacheEvent::Kind::stored);
  EXPECT_THAT(events[0].blocks, ElementsAre(1, ~std::uint64_t{1}));
  EXPECT_EQ(events[0].parent, 9U);
  EXPECT_THAT(events[0].tokens, ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(events[0].block_size, 2);
  EXPECT_EQ(events[0].tier, Tier::device);
  EXPECT_EQ(events[1].kind, CacheEvent::Kind::removed);
  EXPECT_EQ(events[1].tier, Tier::host);
  EXPECT_EQ(events[2].kind, CacheEvent::Kind::cleared);
}

TEST(CacheEvents, OfMapsWithHashesOfBytes) {
  const std::string hash =
      "\xc4\x0a"
      "??\1\2\3\4\5\6\7\x08"s;
  const auto events = read(fields({text("ts"), kTime, text("events"),
                                   list({fields({text("block_hashes"),
                                                 list({hash}),
                                                 text("type"),
                                                 text("BlockStored"),
                                                 text("token_ids"),
                                                 list({small(3)}),
                                                 text("block_size"),
                                                 small(1),
                                                 text("parent_block_hash"),
                                                 kNil,
                                                 text("lora_name"),
                                                 text("a"),
                                                 text("extra_keys"),
                                                 list({list({text("a"), text("salt")})}),
                                                 text("group_idx"),
                                                 small(2),
                                                 text("kv_cache_spec_kind"),
                                                 text("sliding_window"),
                                                 text("unheard_of"),
                                                 fields({text("x"), kTime})})}),
                                   text("data_parallel_rank"), small(0)}));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0].blocks, ElementsAre(0x0102030405060708U));
  EXPECT_EQ(events[0].parent, std::nullopt);
  EXPECT_EQ(events[0].adapter, "a");
  EXPECT_EQ(events[0].salt, "salt");
  EXPECT_EQ(events[0].group, 2);
  EXPECT_TRUE(events[0].window);
}

TEST(CacheEvents, OfNonsenseAreAnError) {
  const std::string huge_array = "\xdd\xff\xff\xff\xff"s;
  for (const std::string& batch :
       {""s, "x"s, kNil, list({kTime}), list({kTime, kNil}), list({kTime, list({list({})})}),
        list({kTime, list({list({text("BlockRemoved"), text("no list")})})}), list({kTime, huge_array}),
        list({huge_array + huge_array, list({})}),
        list({kTime, list({list({text("BlockRemoved"), huge_array})})})})
    EXPECT_FALSE(read_cache_batch(batch)) << testing::PrintToString(batch);
}

// Parsing truncated or changed bytes must not read after their end (checked by sanitizers).
TEST(CacheEvents, NeverReadBeyondTheirEnd) {
  const std::string whole =
      list({kTime, list({fields({text("type"), text("BlockStored"), text("block_hashes"), list({small(1)}),
                                 text("token_ids"), list({small(3), "\xcd\1\2"s}), text("extra_keys"),
                                 list({list({text("a"), "\xc4\2hi"s})})}),
                         list({text("BlockRemoved"), list({"\xcf\1\2\3\4\5\6\7\x08"s})})})});
  ASSERT_EQ(read(whole).size(), 2U);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_cache_batch({exact.data(), size})) << size;
  }
  std::uint64_t draw = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::vector<char> changed(whole.begin(), whole.end());
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t bits = random_bits(3, draw++);
      changed[bits % changed.size()] = static_cast<char>(bits >> 32);
    }
    (void)read_cache_batch({changed.data(), changed.size()});
  }
}

}  // namespace
}  // namespace octavo::fleet
