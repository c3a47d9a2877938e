#include "transfer/block_format.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

const BlockFormat kFormat{.fingerprint = "model", .dtype = "bf16", .block_size = 16, .bytes = 100};
constexpr Hash128 kKey{1, 2};

std::vector<std::byte> sealed() {
  std::vector<std::byte> packed(kFormat.stride());
  for (std::size_t i = 0; i < 100; ++i) contents(kFormat, std::span(packed))[i] = static_cast<std::byte>(i);
  seal(kFormat, kKey, packed);
  return packed;
}

TEST(BlockFormat, ASealedBlockIsTaken) {
  EXPECT_EQ(kFormat.stride() % 64, 0u);
  EXPECT_TRUE(verify(kFormat, kKey, sealed()));
}

TEST(BlockFormat, WhatIsOfAnotherModelFormatOrTextIsRefused) {
  for (BlockFormat other : {BlockFormat{"another", "bf16", 16, 100}, BlockFormat{"model", "f16", 16, 100},
                            BlockFormat{"model", "bf16", 32, 100}}) {
    EXPECT_EQ(verify(other, kKey, sealed()).error().code, ErrorCode::invalid_argument);
    EXPECT_NE(difference(kFormat, other), "");
  }
  EXPECT_EQ(verify(kFormat, {1, 3}, sealed()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(difference(kFormat, kFormat), "");
}

TEST(BlockFormat, EveryByteIsGuarded) {
  for (std::size_t i = 0; i < 64 + 100; ++i) {
    std::vector<std::byte> packed = sealed();
    packed[i] ^= std::byte{0x10};
    EXPECT_FALSE(verify(kFormat, kKey, packed)) << i;
  }
}

}  // namespace
}  // namespace octavo
