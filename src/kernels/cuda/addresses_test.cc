// Tests addresses beyond 2^31 and 2^32 bytes without the memory: only offsets are computed.
#include "kernels/cuda/addresses.h"

#include <gtest/gtest.h>

namespace octavo::cuda {
namespace {

static_assert(element_at(1 << 20, 128256, 128255) == std::int64_t{1048576} * 128256 + 128255);
static_assert(element_at(std::int64_t{300000}, 16384, 5) > std::int64_t{1} << 32);

constexpr KvLayout kLayout{
    .stride_bytes = 80 * 65536, .kv_heads = 8, .head_dim = 128, .block_size = 16, .bits = 16};
static_assert(kLayout.block_bytes() == 65536);

TEST(CudaAddresses, ReachTheLastBlockOfALargeCache) {
  constexpr std::int64_t kBlocks = 1 << 20;  // 5 TB
  EXPECT_EQ(kLayout.vector(kBlocks - 1, 0, 0, 0), (kBlocks - 1) * kLayout.stride_bytes);
  // the last value of a block ends at the end of the block
  EXPECT_EQ(kLayout.vector(kBlocks - 1, 1, 7, 15) + 256,
            (kBlocks - 1) * kLayout.stride_bytes + kLayout.block_bytes());
}

TEST(CudaAddresses, VectorsOfABlockDoNotOverlap) {
  constexpr KvLayout kSmall{.stride_bytes = 4096, .kv_heads = 3, .head_dim = 24, .block_size = 16, .bits = 8};
  std::int64_t next = 0;
  for (int which = 0; which < 2; ++which)
    for (int head = 0; head < 3; ++head)
      for (int token = 0; token < 16; ++token, next += 24)
        EXPECT_EQ(kSmall.vector(0, which, head, token), next);
  EXPECT_EQ(next, kSmall.block_bytes());
  // A block is larger than 2^31 bytes, as if all layers of a large model were in one block.
  constexpr KvLayout kWide{.stride_bytes = std::int64_t{3} << 30,
                           .kv_heads = 1 << 15,
                           .head_dim = 256,
                           .block_size = 256,
                           .bits = 32};
  EXPECT_EQ(kWide.vector(1, 1, (1 << 15) - 1, 255) + 1024, kWide.stride_bytes + kWide.block_bytes());
  EXPECT_EQ(kWide.block_bytes(), std::int64_t{1} << 34);
}

TEST(CudaAddresses, StatesOfRowsAndPiecesFollowEachOther) {
  EXPECT_EQ(state_at(0, 4, 10, 0, 0, 1, 128), 130);
  EXPECT_EQ(state_at(0, 4, 10, 0, 1, 0, 128), 1300);
  EXPECT_EQ(state_at(0, 4, 10, 1, 0, 0, 128), 5200);
  EXPECT_EQ(state_at(std::int64_t{1} << 25, 64, 8192, 7, 63, 8191, 256),
            ((std::int64_t{1} << 25) + (std::int64_t{8} * 64 * 8192 - 1)) * 258);
}

}  // namespace
}  // namespace octavo::cuda
