// Measures an all-reduce and a broadcast among threads, compared with a copy of the same number of bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"

namespace octavo {
namespace {

// The other ranks of a group, each on a separate thread. Whenever rank 0 broadcasts, they run `operation` a
// hundred times.
class Others {
 public:
  Others(int ranks, const std::function<void(SharedMemoryGroup&)>& operation)
      : memory_(SharedMemory::create(SharedMemoryGroup::memory_bytes(ranks)).value()),
        group_(memory_.bytes(), {.rank = 0, .size = ranks}) {
    for (int rank = 1; rank < ranks; ++rank)
      threads_.emplace_back([this, operation, rank, ranks] {
        SharedMemoryGroup theirs(memory_.bytes(), {.rank = rank, .size = ranks});
        std::vector<std::byte> more;
        for (;;) {
          theirs.broadcast(more);
          if (more.empty()) return;
          for (int i = 0; i < 100; ++i) operation(theirs);
        }
      });
  }
  ~Others() {
    std::vector<std::byte> end;
    group_.broadcast(end);
  }

  SharedMemoryGroup& begin() {
    std::vector<std::byte> go(1);
    group_.broadcast(go);
    return group_;
  }

 private:
  const SharedMemory memory_;
  SharedMemoryGroup group_;
  std::vector<std::jthread> threads_;
};

void run(benchmark::State& state, const std::function<void(SharedMemoryGroup&)>& operation) {
  Others others(static_cast<int>(state.range(0)), operation);
  while (state.KeepRunningBatch(100)) {
    SharedMemoryGroup& group = others.begin();
    for (int i = 0; i < 100; ++i) operation(group);
  }
}

void all_reduce(benchmark::State& state) {
  run(state, [&](SharedMemoryGroup& group) {
    thread_local std::vector<float> values;
    values.assign(static_cast<std::size_t>(state.range(1)) / sizeof(float), 0);
    group.all_reduce(values);
  });
}
BENCHMARK(all_reduce)
    ->ArgsProduct({{2, 4}, {1 << 10, 16 << 10, 64 << 10, 1 << 20}})
    ->ArgNames({"ranks", "bytes"})
    ->UseRealTime();

// Broadcasts messages that are as large as a step's plan.
void broadcast(benchmark::State& state) {
  run(state, [&](SharedMemoryGroup& group) {
    thread_local std::vector<std::byte> plan;
    plan.resize(static_cast<std::size_t>(state.range(1)));
    group.broadcast(plan);
  });
}
BENCHMARK(broadcast)->ArgsProduct({{2, 4}, {256, 4 << 10, 64 << 10}})->ArgNames({"ranks", "bytes"})->UseRealTime();

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
