#include "engine/kv_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

// Three layers that keep their keys and values in one group of blocks, and one that keeps none.
CacheLayout some_layout(DType dtype, int block_size) {
  return {.groups = {{.q_heads = 4, .kv = {2, 40, block_size, dtype}, .layers = 3}},
          .layers = {{0, 0}, {}, {0, 1}, {0, 2}},
          .planes = 3,
          .block_size = block_size};
}

TEST(KvMemory, BlocksMayBeTakenFromAnotherAsTheyAre) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f8_e4m3, DType::i8})
    for (const int block_size : {16, 32}) {
      const CacheLayout layout = some_layout(dtype, block_size);
      KvMemory from = KvMemory::allocate(layout, backend, 4, 0).value();
      KvMemory to = KvMemory::allocate(layout, backend, 4, 0).value();
      EXPECT_EQ(from.native_blocks().layout, to.native_blocks().layout);
      std::vector<std::byte> sent(static_cast<std::size_t>(from.exchange_bytes())), got = sent, other = sent;
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(random_bits(1, i));
      from.import_block(2, sent);
      to.export_block(0, other);
      std::ranges::copy(from.native_blocks().memory(2), to.native_blocks().memory(1).begin());
      to.export_block(1, got);
      EXPECT_EQ(got, sent);
      to.export_block(0, got);
      EXPECT_EQ(got, other);
    }
}

}  // namespace
}  // namespace octavo
