#include "engine/cache/kv_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/random.h"
#include "engine/cache/ranked_kv_memory.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

// Returns a layout of three layers with KV, which are in one group of blocks, and one layer without KV.
CacheLayout some_layout(DType dtype, int block_size) {
  return {.groups = {{.q_heads = 4, .kv = {2, 40, block_size, dtype}, .layers = 3}},
          .layers = {{0, 0}, {}, {0, 1}, {0, 2}},
          .planes = 3,
          .block_size = block_size};
}

BlockFormat described(const KvMemory& memory) {
  BlockFormat format;
  memory.pieces().describe(format);
  return format;
}

TEST(KvMemory, BlocksMayBeTakenFromAnotherAsTheyAre) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f8_e4m3, DType::i8, DType::i4})
    for (const int block_size : {16, 32}) {
      const CacheLayout layout = some_layout(dtype, block_size);
      const KvMemory from = KvMemory::allocate(layout, backend, 4, 0).value();
      const KvMemory to = KvMemory::allocate(layout, backend, 4, 0).value();
      EXPECT_EQ(from.native_blocks().layout, to.native_blocks().layout);
      std::vector<std::byte> sent(static_cast<std::size_t>(described(from).bytes)), got = sent, other = sent;
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(random_bits(1, i));
      from.import_piece({.number = 2}, sent);
      to.export_piece({.number = 0}, other);
      std::ranges::copy(from.native_blocks().memory({.number = 2}),
                        to.native_blocks().memory({.number = 1}).begin());
      to.export_piece({.number = 1}, got);
      EXPECT_EQ(got, sent);
      to.export_piece({.number = 0}, got);
      EXPECT_EQ(got, other);
    }
}

// Layers that are exported with one call give the same bytes as layers that are exported one by one.
TEST(KvMemory, ABlockIsItsLayersOneAfterTheOther) {
  std::vector<Backend> backends;
  backends.push_back(make_reference_backend());
  backends.push_back(make_cpu_backend({.threads = 1, .isa = {}}).value());
  for (Backend& backend : backends)
    for (const DType dtype : {DType::f32, DType::i8, DType::i4}) {
      const KvMemory memory = KvMemory::allocate(some_layout(dtype, 16), backend, 4, 0).value();
      std::vector<std::byte> sent(static_cast<std::size_t>(described(memory).bytes)), got = sent;
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(random_bits(1, i));
      memory.import_piece({.number = 2}, sent);
      std::span<std::byte> rest = got;
      for (const std::size_t layer : {0, 2, 3}) {
        const KvLayer& cache = memory.layers()[layer];
        const auto bytes = static_cast<std::size_t>(kv_exchange_bytes(cache.spec));
        kv_exchange(backend.name)->export_block(cache, 2, rest.first(bytes));
        rest = rest.subspan(bytes);
      }
      EXPECT_TRUE(rest.empty());
      EXPECT_EQ(got, sent);
      memory.export_piece({.number = 2}, got);
      EXPECT_EQ(got, sent);
      memory.export_piece({.number = 1}, got);
      EXPECT_EQ(got, std::vector<std::byte>(got.size())) << "another block";
    }
}

// The model has a group with a smaller window, a layer that reads another layer's KV, and recurrent states.
TEST(KvMemory, PiecesAreOfCacheGroupsAndOfStates) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const KvSpec wide{2, 40, 16, DType::f32}, narrow{1, 40, 16, DType::f32};
  const CacheLayout layout{.groups = {{.q_heads = 4, .kv = wide, .layers = 2},
                                      {.window = 32, .q_heads = 4, .kv = narrow, .layers = 1}},
                           .layers = {{0, 0}, {1, 0}, {0, 1}, {0, 1}, {.state = 0}, {.state = 3000}},
                           .planes = 2,
                           .block_size = 16,
                           .state_floats = 6000};
  const KvMemory memory = KvMemory::allocate(layout, backend, 4, 3).value();
  const BlockFormat format = described(memory);
  EXPECT_EQ(format.bytes, 2 * kv_exchange_bytes(wide));
  EXPECT_EQ(format.windows, (std::vector<int>{0, 32}));
  EXPECT_EQ(format.state_pieces, 2) << "24,000 bytes in pieces of " << format.bytes;
  const auto bytes = static_cast<std::size_t>(format.bytes);
  const auto number = [](const KvLocation& location, std::size_t i) {
    return static_cast<std::byte>(random_bits(static_cast<std::uint64_t>(location.part), i));
  };
  const KvLocation locations[] = {{0, 3}, {1, 2}, {2, 1}, {3, 1}};
  std::vector<std::byte> piece(bytes);
  for (const KvLocation& location : locations) {
    for (std::size_t i = 0; i < bytes; ++i) piece[i] = number(location, i);
    memory.import_piece(location, piece);
  }
  const std::size_t used[] = {bytes, static_cast<std::size_t>(kv_exchange_bytes(narrow)), bytes,
                              24'000 - bytes};
  for (std::size_t p = 0; p < std::size(locations); ++p) {
    memory.export_piece(locations[p], piece);
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(piece[i], i < used[p] ? number(locations[p], i) : std::byte{}) << p << ", " << i;
  }
  EXPECT_EQ(memory.native_blocks().memory({3, 1}).size(), used[3]);
}

// In a pipeline stage, all layers of a group may be in other stages.
TEST(KvMemory, AGroupMayHaveNoLayerHere) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const KvSpec kv{2, 40, 16, DType::f32};
  const CacheLayout layout{
      .groups = {{.window = 32, .q_heads = 4, .kv = kv, .layers = 0}, {.q_heads = 4, .kv = kv, .layers = 1}},
      .layers = {{1, 0}},
      .planes = 1,
      .block_size = 16};
  KvMemory memory = KvMemory::allocate(layout, backend, 4, 0).value();
  memory.prefault();
  memory.used(3);
  EXPECT_EQ(memory.native_blocks().memory({1, 3}).size(),
            static_cast<std::size_t>(layout.block_bytes(backend.ops)));
}

// Two ranks have half of the heads each, and two stages have one layer each.
TEST(KvMemory, RanksHaveTogetherWhatOneHas) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto layout_of = [](DType dtype, int heads, int layers) {
    CacheLayout layout{.groups = {{.q_heads = 4, .kv = {heads, 40, 16, dtype}, .layers = layers}},
                       .layers = {},
                       .planes = layers,
                       .block_size = 16};
    for (int i = 0; i < layers; ++i) layout.layers.push_back({0, i});
    return layout;
  };
  for (const DType dtype : {DType::bf16, DType::i8, DType::i4})
    for (const auto& [heads, parts] : {std::pair(4, 2), std::pair(1, 2), std::pair(2, 4)}) {
      const KvMemory whole = KvMemory::allocate(layout_of(dtype, heads, 2), backend, 3, 0).value();
      RankCaches caches{.whole = layout_of(dtype, heads, 2)};
      std::vector<KvMemory> memories;
      std::vector<std::span<std::byte>> memory;
      std::vector<SharedMemory> opened;
      for (int rank = 0; rank < 2 * parts; ++rank) {
        caches.ranks.push_back(
            {rank % parts, parts, rank / parts, layout_of(dtype, std::max(1, heads / parts), 1)});
        memories.push_back(KvMemory::allocate(caches.ranks.back().layout, backend, 3, 0, true).value());
        opened.push_back(SharedMemory::open_of(getpid(), memories.back().segment().fd()).value());
        memory.push_back(opened.back().bytes());
      }
      const RankedKvMemory ranked =
          RankedKvMemory::create(caches, backend, 3, memory, std::move(opened)).value();
      std::vector<std::byte> sent(static_cast<std::size_t>(described(whole).bytes)), got = sent;
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(random_bits(1, i));
      whole.import_piece({.number = 2}, sent);
      whole.export_piece({.number = 2}, got);
      ASSERT_EQ(got, sent);
      ranked.import_piece({.number = 1}, sent);
      std::ranges::fill(got, std::byte{});
      ranked.export_piece({.number = 1}, got);
      EXPECT_EQ(got, sent) << heads << " heads over " << parts;
      std::vector<std::byte> own(static_cast<std::size_t>(described(memories[1]).bytes));
      memories[1].export_piece({.number = 1}, own);
      if (heads == 4 && dtype == DType::bf16) {
        EXPECT_TRUE(std::equal(own.begin(), own.begin() + 2 * 16 * 40 * 2, sent.begin() + 2 * 16 * 40 * 2));
      }
    }
}

}  // namespace
}  // namespace octavo
