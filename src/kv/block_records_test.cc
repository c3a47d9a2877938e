#include "kv/block_records.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace octavo {
namespace {

using State = BlockRecords::State;
using Tokens = std::array<std::int32_t, 4>;

constexpr BlockRecordsShape kShape{.num_blocks = 8, .block_size = 4, .identity = {7, 9}};

// Memory of the records. `opened` is a later process's view of this memory.
struct Memory {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(BlockRecords::bytes(kShape) / 8);

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
  BlockRecords opened(BlockRecordsShape shape = kShape) { return {bytes(), shape}; }
};

BlockContent content(const Tokens& tokens, std::uint64_t key, PrefixId parent = kEmptyPrefix) {
  return {.group = 1,
          .key = {key, 1},
          .extra = {2, key},
          .parent = parent,
          .tokens = tokens,
          .parent_key = {5, 6}};
}

TEST(BlockRecords, ALaterProcessReadsWhatWasWritten) {
  Memory memory;
  BlockRecords first = memory.opened();
  EXPECT_FALSE(first.continues());
  first.begin(42);
  const Tokens tokens{1, -2, 3, 4};
  first.write(3, content(tokens, 11, 8), 9, 77);
  first.set_released(3, 5);
  first.write(4, content(tokens, 12, 9), 10, 78);
  first.kept() += 2;

  const BlockRecords later = memory.opened();
  ASSERT_TRUE(later.continues());
  EXPECT_EQ(later.seed(), 42u);
  EXPECT_EQ(later.kept(), 2);
  EXPECT_EQ(later.discarded(), 0);
  for (BlockId block = 0; block < kShape.num_blocks; ++block)
    EXPECT_EQ(later.state(block), block == 3 || block == 4 ? State::complete : State::empty) << block;
  const BlockRecords::Record record = later.read(3);
  EXPECT_EQ(record.content.group, 1);
  EXPECT_EQ(record.content.key, (Hash128{11, 1}));
  EXPECT_EQ(record.content.extra, (Hash128{2, 11}));
  EXPECT_EQ(record.content.parent_key, (Hash128{5, 6}));
  EXPECT_EQ(record.content.parent, 8u);
  EXPECT_EQ(record.prefix, 9u);
  EXPECT_EQ(record.data_checksum, 77u);
  EXPECT_EQ(record.released, 5u);
  EXPECT_TRUE(std::ranges::equal(record.content.tokens, tokens));
  EXPECT_EQ(later.read(4).released, BlockRecords::kInUse);
}

TEST(BlockRecords, ErasedRecordsAreEmpty) {
  Memory memory;
  BlockRecords records = memory.opened();
  records.begin(1);
  for (const BlockId block : {0, 1, 2}) records.write(block, content({}, 3), 4, 5);
  records.erase(1);
  EXPECT_EQ(records.state(0), State::complete);
  EXPECT_EQ(records.state(1), State::empty);
  records.erase_all();
  EXPECT_EQ(records.state(0), State::empty);
  EXPECT_TRUE(records.continues());
}

TEST(BlockRecords, OtherShapesAndIdentitiesDoNotContinue) {
  Memory memory;
  memory.opened().begin(1);
  const auto with = [&](auto change) {
    BlockRecordsShape shape = kShape;
    change(shape);
    return memory.opened(shape).continues();
  };
  EXPECT_TRUE(with([](auto&) {}));
  EXPECT_FALSE(with([](auto& s) { s.num_blocks = 7; }));
  EXPECT_FALSE(with([](auto& s) { s.block_size = 2; }));
  EXPECT_FALSE(with([](auto& s) { s.identity.high = 8; }));
}

// The checksums detect every changed byte of header and records, except in counters and in `released`,
// which do not affect contents.
TEST(BlockRecords, EveryFlippedBitIsFound) {
  Memory memory;
  BlockRecords records = memory.opened();
  records.begin(1);
  records.write(0, content({1, 2, 3, 4}, 3), 4, 5);
  const std::size_t header = BlockRecords::bytes({.num_blocks = 0, .block_size = 4});
  const std::size_t record = BlockRecords::bytes({.num_blocks = 1, .block_size = 4}) - header;
  std::vector<std::size_t> unnoticed;
  for (std::size_t at = 0; at < header + record; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      const std::byte before = memory.bytes()[at];
      memory.bytes()[at] ^= static_cast<std::byte>(1 << bit);
      if (records.continues() && records.state(0) == State::complete) unnoticed.push_back(at);
      memory.bytes()[at] = before;
    }
  EXPECT_EQ(records.state(0), State::complete);
  EXPECT_EQ(unnoticed.size(), 8 * (sizeof(std::int64_t) * 2 + sizeof(std::uint64_t)));
}

// A process that is killed while it writes a record may have written only the first part.
TEST(BlockRecords, AnInterruptedWriteIsNotTrusted) {
  Memory before, after;
  for (Memory* memory : {&before, &after}) {
    BlockRecords records = memory->opened();
    records.begin(1);
    records.write(2, content({1, 2, 3, 4}, 3), 4, 5);
  }
  before.opened().erase(2);
  after.opened().write(2, content({5, 6, 7, 8}, 9, 4), 6, 7);
  std::vector<std::size_t> differ;
  for (std::size_t at = 0; at < before.bytes().size(); ++at)
    if (before.bytes()[at] != after.bytes()[at]) differ.push_back(at);
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Memory torn = before;
    const auto state =
        static_cast<std::size_t>(2 * (BlockRecords::bytes({.num_blocks = 1, .block_size = 4}) -
                                      BlockRecords::bytes({.num_blocks = 0, .block_size = 4})) +
                                 BlockRecords::bytes({.num_blocks = 0, .block_size = 4}));
    std::size_t written = 0;
    for (const std::size_t at : differ)
      if (at >= state + 4 && random() % 2 == 0) torn.bytes()[at] = after.bytes()[at], ++written;
    EXPECT_EQ(torn.opened().state(2), State::empty);
    // A record with missing fields is broken even if the state word is set.
    std::memcpy(&torn.bytes()[state], &after.bytes()[state], 4);
    if (written < differ.size() - 4) {
      EXPECT_EQ(torn.opened().state(2), State::broken);
    }
  }
}

TEST(BlockRecords, ARecordOfAnotherBlockIsBroken) {
  Memory memory;
  BlockRecords records = memory.opened();
  records.begin(1);
  records.write(0, content({1, 2, 3, 4}, 3), 4, 5);
  const std::size_t header = BlockRecords::bytes({.num_blocks = 0, .block_size = 4});
  const std::size_t size = BlockRecords::bytes({.num_blocks = 1, .block_size = 4}) - header;
  std::ranges::copy(memory.bytes().subspan(header, size),
                    memory.bytes().begin() + static_cast<std::ptrdiff_t>(header + size));
  EXPECT_EQ(records.state(1), State::broken);
}

}  // namespace
}  // namespace octavo
