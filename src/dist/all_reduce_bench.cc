// What an all-reduce between two threads costs, beside copying as many bytes.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"

namespace octavo {
namespace {

void all_reduce(benchmark::State& state) {
  const auto floats = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(2)).value();
  SharedMemoryGroup group(memory.bytes(), {.rank = 0, .size = 2});
  std::jthread other([&] {
    SharedMemoryGroup theirs(memory.bytes(), {.rank = 1, .size = 2});
    std::vector<std::byte> more;
    std::vector<float> values(floats);
    for (;;) {
      theirs.broadcast(more);
      if (more.empty()) return;
      for (int i = 0; i < 100; ++i) theirs.all_reduce(values);
    }
  });
  std::vector<std::byte> go(1);
  std::vector<float> values(floats);
  while (state.KeepRunningBatch(100)) {
    group.broadcast(go);
    for (int i = 0; i < 100; ++i) group.all_reduce(values);
  }
  go.clear();
  group.broadcast(go);
}
BENCHMARK(all_reduce)->Arg(1 << 10)->Arg(16 << 10)->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

void copy(benchmark::State& state) {
  std::vector<std::byte> from(static_cast<std::size_t>(state.range(0))), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(copy)->Arg(64 << 10);

}  // namespace
}  // namespace octavo
