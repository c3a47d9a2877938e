#include <benchmark/benchmark.h>

#include <numeric>

#include "base/random.h"
#include "kv/sequence_blocks.h"

namespace octavo {
namespace {

constexpr int kBlocks = 100'000;
constexpr int kSize = 16;

// The pool contains only cached sequences of `blocks` blocks each. An iteration looks up every sequence.
void find_100k_cached_blocks(benchmark::State& state) {
  const auto blocks = static_cast<int>(state.range(0));
  KvCache cache(kBlocks, kSize, {CacheGroup{}});
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(blocks * kSize) + 1);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<std::vector<Hash128>> sequences(static_cast<std::size_t>(kBlocks / blocks));
  std::vector<BlockId> given_up;
  std::uint64_t draw = 0;
  for (auto& keys : sequences) {
    for (int i = 0; i < blocks; ++i, ++draw) keys.push_back({random_bits(1, draw), random_bits(2, draw)});
    SequenceBlocks sequence(cache, blocks * kSize);
    sequence.reserve(blocks * kSize);
    sequence.publish(blocks * kSize, {tokens, keys, {}});
    sequence.give_up(given_up);
  }
  for (const BlockId b : given_up) cache.pool.release(b);

  PrefixMatch match;
  for (auto _ : state) {
    std::int64_t found = 0;
    for (const auto& keys : sequences) {
      find_prefix(cache, {tokens, keys, {}}, match);
      found += match.blocks;
    }
    if (found != kBlocks / blocks * blocks) state.SkipWithError("not all blocks were found");
  }
  state.SetItemsProcessed(state.iterations() * (kBlocks / blocks) * blocks);
}
BENCHMARK(find_100k_cached_blocks)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void allocate_and_release(benchmark::State& state) {
  BlockPool pool(kBlocks, kSize, 1);
  for (auto _ : state) pool.release(pool.allocate(0));
}
BENCHMARK(allocate_and_release);

}  // namespace
}  // namespace octavo
