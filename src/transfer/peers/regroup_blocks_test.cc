#include "transfer/peers/regroup_blocks.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Returns a format with two layers. Each has three planes of 4 bytes per token and one plane of scales.
BlockFormat format_of(int block_size) {
  return {.fingerprint = "model",
          .dtype = "i8",
          .block_size = block_size,
          .bytes = 2 * (3 * 4 + 1) * block_size,
          .planes = {{3, 4}, {1, 1}, {3, 4}, {1, 1}}};
}

// The value of a byte is its index in the prompt, modulo 256.
std::vector<std::byte> block_of(const BlockFormat& format, std::size_t number) {
  std::vector<std::byte> block;
  int plane = 0;
  for (const BlockFormat::Planes& planes : format.planes)
    for (int i = 0; i < planes.count; ++i, ++plane)
      for (int token = 0; token < format.block_size; ++token)
        for (int byte = 0; byte < planes.token_bytes; ++byte) {
          const int position = static_cast<int>(number) * format.block_size + token;
          block.push_back(static_cast<std::byte>(plane * 31 + position * 5 + byte));
        }
  EXPECT_EQ(std::ssize(block), format.bytes);
  return block;
}

TEST(BlockRegrouper, TokensStayWhereTheyAreInTheirPrompt) {
  for (const auto& [from_size, to_size] :
       {std::pair(16, 32), std::pair(32, 16), std::pair(16, 256), std::pair(48, 32), std::pair(32, 48)}) {
    const BlockFormat from = format_of(from_size), to = format_of(to_size);
    ASSERT_TRUE(can_regroup(from, to));
    int reads = 0;
    BlockRegrouper regrouper(from, to, [&](std::size_t number, std::span<std::byte> out) {
      ++reads;
      std::ranges::copy(block_of(from, number), out.begin());
    });
    std::vector<std::byte> got(static_cast<std::size_t>(to.bytes));
    constexpr std::size_t kBlocks = 6;
    for (std::size_t number = 0; number < kBlocks; ++number) {
      regrouper.make(number, got);
      ASSERT_EQ(got, block_of(to, number)) << from_size << " to " << to_size << ", " << number;
    }
    EXPECT_EQ(reads, (static_cast<int>(kBlocks) * to_size + from_size - 1) / from_size) << "each block once";
    regrouper.make(1, got);
    EXPECT_EQ(got, block_of(to, 1));
  }
}

TEST(BlockRegrouper, OnlyTheSizeMayDiffer) {
  const BlockFormat from = format_of(16);
  EXPECT_FALSE(can_regroup(from, from));
  EXPECT_FALSE(can_regroup(from, format_of(17 * 16))) << "an engine may not ask for memory without a limit";
  const auto with = [](auto&& change) {
    BlockFormat format = format_of(32);
    change(format);
    return format;
  };
  EXPECT_TRUE(can_regroup(from, with([](BlockFormat& f) { f.planes.clear(); })))
      << "what is made says the one that makes it";
  EXPECT_FALSE(can_regroup(with([](BlockFormat& f) { f.planes.clear(); }), from));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.block_size = 0; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.block_size = -16; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { ++f.bytes; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.fingerprint = "other"; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.dtype = "bf16"; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.windows = {64}; })));
  EXPECT_FALSE(can_regroup(from, with([](BlockFormat& f) { f.state_pieces = 1; })));
}

}  // namespace
}  // namespace octavo
