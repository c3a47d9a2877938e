#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "fleet/index/held_blocks.h"

namespace octavo::fleet {
namespace {

constexpr std::uint32_t kReplicas = 1000;
constexpr std::uint32_t kBlocks = 1 << 20;  // blocks of all prompts together
// blocks per prompt
constexpr std::uint32_t kPrompt = 2048;
constexpr std::uint32_t kPrompts = kBlocks / kPrompt;
// blocks per event
constexpr std::uint32_t kEvent = 8;
// tokens per block
constexpr std::uint32_t kSize = 16;

// Returns the endpoint that has the prompt. Every fourth prompt is at two endpoints.
EndpointId holder(std::uint32_t prompt, bool second) { return (prompt * 7 + (second ? 500 : 0)) % kReplicas; }

std::uint64_t name(std::uint32_t prompt, std::uint32_t block) { return std::uint64_t{prompt} << 32 | block; }

std::vector<std::uint32_t> tokens_of(std::uint32_t prompt, std::uint32_t first, std::uint32_t blocks) {
  std::vector<std::uint32_t> tokens(blocks * kSize);
  for (std::uint32_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint32_t>(random_bits(prompt, first * kSize + i));
  return tokens;
}

CacheEvent stored(std::uint32_t prompt, std::uint32_t first) {
  CacheEvent event{.kind = CacheEvent::Kind::stored, .block_size = kSize};
  if (first > 0) event.parent = name(prompt, first - 1);
  for (std::uint32_t i = 0; i < kEvent; ++i) event.blocks.push_back(name(prompt, first + i));
  event.tokens = tokens_of(prompt, first, kEvent);
  return event;
}

CacheEvent removed(std::uint32_t prompt, std::uint32_t first) {
  CacheEvent event{.kind = CacheEvent::Kind::removed};
  for (std::uint32_t i = kEvent; i-- > 0;) event.blocks.push_back(name(prompt, first + i));
  return event;
}

struct World {
  HeldBlocks held{kBlocks};
  std::vector<std::vector<PrefixKey>> prompts;
  double bytes_per_block = 0;

  World() {
    const auto before = mallinfo2();
    std::size_t blocks = 0;
    for (std::uint32_t p = 0; p < kPrompts; ++p)
      for (const bool second : {false, true})
        for (std::uint32_t b = 0; b < kPrompt && (!second || p % 4 == 0); b += kEvent, blocks += kEvent)
          held.apply(holder(p, second), stored(p, b));
    const auto after = mallinfo2();
    const auto bytes = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    bytes_per_block = static_cast<double>(bytes) / static_cast<double>(blocks);
    for (std::uint32_t p = 0; p < kPrompts; ++p)
      prefix_keys(first_key("", ""), tokens_of(p, 0, kPrompt), kSize, false, prompts.emplace_back());
  }
};

World& world() {
  static World world;
  return world;
}

// An event that removes blocks, and an event that stores them again.
struct Churn {
  EndpointId endpoint;
  CacheEvent goes, comes;
};

const std::vector<Churn>& churns() {
  static const std::vector<Churn> churns = [] {
    std::vector<Churn> made;
    for (std::uint64_t i = 0; i < 16'384; ++i) {
      const auto prompt = static_cast<std::uint32_t>(random_bits(2, i) % kPrompts);
      const auto first = static_cast<std::uint32_t>(random_bits(3, i) % (kPrompt / kEvent)) * kEvent;
      made.push_back({holder(prompt, false), removed(prompt, first), stored(prompt, first)});
    }
    return made;
  }();
  return churns;
}

void apply(HeldBlocks& held, const Churn& churn) {
  held.apply(churn.endpoint, churn.goes);
  held.apply(churn.endpoint, churn.comes);
}

// One iteration applies two events with 8 blocks each. The benchmark's items are blocks.
void apply_events(benchmark::State& state) {
  HeldBlocks& held = world().held;
  const auto& events = churns();
  std::size_t next = 0;
  for (auto _ : state) apply(held, events[next++ % events.size()]);
  state.counters["bytes_per_block"] = world().bytes_per_block;
  state.SetItemsProcessed(state.iterations() * 2 * kEvent);
}
BENCHMARK(apply_events);

// Looks up prompts of 32 Ki tokens that are cached completely. The benchmark's items are blocks.
void look_up(benchmark::State& state) {
  const World& world = fleet::world();
  Overlap overlap;
  std::vector<std::int64_t> times;
  std::uint64_t draw = 0;
  for (auto _ : state) {
    const std::uint64_t p = random_bits(1, draw++) % kPrompts;
    const auto began = std::chrono::steady_clock::now();
    world.held.read().match(world.prompts[p], overlap);
    times.push_back((std::chrono::steady_clock::now() - began).count());
    if (state.threads() == 1 && overlap.of(holder(static_cast<std::uint32_t>(p), false)).blocks() != kPrompt)
      state.SkipWithError("not all blocks were found");
  }
  std::ranges::sort(times);
  state.counters["p50_us"] = static_cast<double>(times[times.size() / 2]) * 1e-3;
  state.counters["p99_us"] = static_cast<double>(times[times.size() * 99 / 100]) * 1e-3;
  state.SetItemsProcessed(state.iterations() * kPrompt);
}
BENCHMARK(look_up)->Name("match_32k_tokens");

// One thread looks up prompts while a second thread applies events. The benchmark's items are the blocks of
// both threads.
void look_up_beside_events(benchmark::State& state) {
  state.thread_index() == 0 ? look_up(state) : apply_events(state);
}
BENCHMARK(look_up_beside_events)->Threads(2)->UseRealTime();

// Alternates a lookup of a prompt of 32 Ki tokens with events that remove 16 blocks and add 16. The
// benchmark's items are the blocks of lookups and events, as in NVIDIA Dynamo's benchmark.
void events_and_lookups(benchmark::State& state) {
  World& world = fleet::world();
  const auto& events = churns();
  Overlap overlap;
  std::size_t next = 0;
  for (auto _ : state) {
    for (int i = 0; i < 2; ++i) apply(world.held, events[next++ % events.size()]);
    world.held.read().match(world.prompts[next * 37 % kPrompts], overlap);
    benchmark::DoNotOptimize(overlap);
  }
  state.SetItemsProcessed(state.iterations() * (4 * kEvent + kPrompt));
}
BENCHMARK(events_and_lookups);

}  // namespace
}  // namespace octavo::fleet
