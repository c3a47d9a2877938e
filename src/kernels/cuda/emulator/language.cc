#include "kernels/cuda/emulator/language.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/emulator/memory.h"
#include "tensor/dtype.h"

namespace octavo::cuda::emulated {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr std::size_t kSharedAlignment = 1024;
constexpr std::size_t kLanes = 32;

// Launches that run twice: every so manieth, with so little memory that keeping it costs nothing.
constexpr std::uint64_t kCheckedEvery = 7;
constexpr std::size_t kCheckedBytes = std::size_t{4} << 20;

// Threads that meet: each arrival is counted, the last one lets all of them on.
struct Barrier {
  int members = 0;
  int arrived = 0;
  std::uint64_t passed = 0;

  void release_if_full() {
    if (members == 0 || arrived < members) return;
    arrived = 0;
    ++passed;
  }
};

// A barrier in shared memory: `phase` passes when all have arrived and all bytes are there.
struct CountingBarrier {
  Barrier phase;
  int arrivals = 0, missing = 0;
  std::int64_t bytes = 0;
  std::vector<std::pair<std::int64_t, std::function<void()>>> copies;  // that nobody has waited for
  int waiting = 0;

  void pass_if_complete() {
    if (waiting > 0) {
      for (const auto& [size, copy] : copies) {
        copy();
        bytes -= size;
      }
      copies.clear();
    }
    if (missing > 0 || bytes != 0 || !copies.empty()) return;
    missing = arrivals;
    ++phase.passed;
  }
};

struct Warp {
  Barrier barrier;
  // Two sets of slots, by turns: whoever is in the next exchange has read this one.
  alignas(16) std::byte slots[2][kLanes * kExchangeBytes];
};

// Work in the groups that it was committed in; the last one is still open.
using Groups = std::deque<std::vector<std::function<void()>>>;

struct Fiber {
  jmp_buf context;
  std::unique_ptr<std::byte[]> stack;
  dim3 index;
  int lane = 0;
  Warp* warp = nullptr;
  unsigned exchanges = 0;
  bool started = false, running = false;
  bool has_waited = false;  // for the kernels before
  const Barrier* waits = nullptr;  // until waits->passed > seen
  std::uint64_t seen = 0;
  std::array<Groups, 2> later;
};

// The device: fibers are made once and take up one thread of a block after the other.
struct Machine {
  std::mutex busy;
  jmp_buf scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Warp> warps;
  Barrier block;
  std::array<Barrier, 16> named;
  std::map<const void*, CountingBarrier> counting;
  Fiber* current = nullptr;
  const std::function<void()>* body = nullptr;
  dim3 block_index, block_size;
  std::unique_ptr<std::byte[]> shared;
  unsigned char* shared_begin = nullptr;
  std::vector<void*> entered;      // static variables that a thread of the block has come to
  std::vector<std::size_t> order;  // in which threads take turns
  std::uint64_t launches = 0;
};
Machine& machine() {
  static Machine m;
  return m;
}

void to_scheduler(Fiber& fiber) {
  if (_setjmp(fiber.context) == 0) _longjmp(machine().scheduler, 1);
}

// A fiber's whole life: one thread of a block, over and over.
void live() {
  for (;;) {
    Machine& m = machine();
    Fiber& fiber = *m.current;
    (*m.body)();
    for (const Groups& groups : fiber.later)
      CHECK(groups.size() == 1 && groups[0].empty(), "a thread that ends with work under way");
    CHECK(fiber.has_waited, "a thread that has not waited for the kernels before its own");
    fiber.running = false;
    for (Barrier* barrier : {&fiber.warp->barrier, &m.block}) {  // who has returned is not waited for
      --barrier->members;
      barrier->release_if_full();
    }
    to_scheduler(fiber);
  }
}

void resume(Fiber& fiber) {
  Machine& m = machine();
  m.current = &fiber;
  if (_setjmp(m.scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.context, 1);
  fiber.started = true;
  ucontext_t context;
  CHECK(getcontext(&context) == 0);
  fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  setcontext(&context);
}

void wait(Barrier& barrier) {
  Fiber& fiber = *machine().current;
  fiber.waits = &barrier;
  fiber.seen = barrier.passed;
  ++barrier.arrived;
  barrier.release_if_full();
  if (barrier.passed == fiber.seen) to_scheduler(fiber);
  fiber.waits = nullptr;
}

Barrier& named(int id, int threads) {
  Barrier& barrier = machine().named.at(static_cast<std::size_t>(id));
  CHECK(id > 0 && threads % static_cast<int>(kLanes) == 0 && (barrier.arrived == 0 || barrier.members == threads),
        "barrier {} of {} threads", id, threads);
  barrier.members = threads;
  return barrier;
}

void run_block(int threads) {
  Machine& m = machine();
  m.block = {.members = threads};
  m.named = {};
  m.counting.clear();
  for (std::size_t w = 0; w < m.warps.size(); ++w) m.warps[w].barrier = {.members = kLanes};
  for (int t = 0; t < threads; ++t) {
    Fiber& fiber = *m.fibers[static_cast<std::size_t>(t)];
    fiber.index = dim3(static_cast<unsigned>(t), 0, 0);
    fiber.lane = t % static_cast<int>(kLanes);
    fiber.warp = &m.warps[static_cast<std::size_t>(t) / kLanes];
    fiber.exchanges = 0;
    fiber.has_waited = false;
    fiber.later.fill(Groups(1));
    fiber.running = true;
    fiber.waits = nullptr;
  }
  for (int left = threads; left > 0;) {
    bool moved = false;
    for (const std::size_t t : m.order) {
      Fiber& fiber = *m.fibers[t];
      if (!fiber.running || (fiber.waits != nullptr && fiber.waits->passed == fiber.seen)) continue;
      resume(fiber);
      moved = true;
      if (!fiber.running) --left;
    }
    CHECK(moved, "a barrier that some threads of the block never reach");
  }
}

void run_blocks(dim3 grid, int threads, std::size_t shared_bytes, bool backwards) {
  Machine& m = machine();
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = backwards ? blocks - 1 - i : i;
    m.block_index =
        dim3(static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
             static_cast<unsigned>(block / grid.x / grid.y));
    std::memset(m.shared_begin, 0xff, shared_bytes);
    m.entered.clear();
    run_block(threads);
  }
}

}  // namespace

void run(dim3 grid, int threads, std::size_t shared_bytes, const std::function<void()>& body) {
  Machine& m = machine();
  const std::lock_guard lock(m.busy);
  const DeviceMemoryAccess access;
  CHECK(threads > 0 && threads % static_cast<int>(kLanes) == 0 && threads <= 1024, "{} threads in a block",
        threads);
  CHECK(grid.y <= 65535 && grid.z <= 65535 && shared_bytes <= (227 << 10),
        "grid {} x {} x {}, {} bytes shared", grid.x, grid.y, grid.z, shared_bytes);
  while (m.fibers.size() < static_cast<std::size_t>(threads)) m.fibers.push_back(std::make_unique<Fiber>());
  m.warps.resize(static_cast<std::size_t>(threads) / kLanes);
  m.body = &body;
  m.block_size = dim3(static_cast<unsigned>(threads));
  // The end of shared memory is the end of an allocation, so that a sanitizer sees what lies beyond.
  const std::size_t room = (shared_bytes + 15) / 16 * 16;
  m.shared = std::make_unique<std::byte[]>(room + kSharedAlignment + 16);
  const auto address = reinterpret_cast<std::uintptr_t>(m.shared.get());
  m.shared_begin = reinterpret_cast<unsigned char*>(m.shared.get()) + (kSharedAlignment - address % kSharedAlignment);
  m.order.resize(static_cast<std::size_t>(threads));
  std::iota(m.order.begin(), m.order.end(), std::size_t{0});
  std::ranges::shuffle(m.order, std::minstd_rand(static_cast<unsigned>(++m.launches)));

  const bool checked = m.launches % kCheckedEvery == 0 && device_bytes() <= kCheckedBytes;
  const std::vector<std::byte> before = checked ? device_contents() : std::vector<std::byte>{};
  run_blocks(grid, threads, room, false);
  if (!checked) return;
  const std::vector<std::byte> after = device_contents();
  set_device_contents(before);
  std::ranges::reverse(m.order);
  run_blocks(grid, threads, room, true);
  CHECK(device_contents() == after, "a race: the result depends on the order of threads or blocks");
}

void enter_shared(void* variable, std::size_t bytes) {
  std::vector<void*>& entered = machine().entered;
  if (std::ranges::find(entered, variable) != entered.end()) return;
  entered.push_back(variable);
  std::memset(variable, 0xff, bytes);
}

const dim3& thread_index() { return machine().current->index; }
const dim3& block_index() { return machine().block_index; }
const dim3& block_size() { return machine().block_size; }
unsigned char* shared_memory() { return machine().shared_begin; }
int lane() { return machine().current->lane; }

void wait_for_kernels() { machine().current->has_waited = true; }

void block_barrier() { wait(machine().block); }
void warp_barrier() { wait(machine().current->warp->barrier); }

void named_barrier(int id, int threads) { wait(named(id, threads)); }
void named_arrival(int id, int threads) {
  Barrier& barrier = named(id, threads);
  ++barrier.arrived;
  barrier.release_if_full();
}

void begin_later(Later kind, std::function<void()> work) {
  machine().current->later[static_cast<std::size_t>(kind)].back().push_back(std::move(work));
}
void commit_later(Later kind) { machine().current->later[static_cast<std::size_t>(kind)].emplace_back(); }
void wait_later(Later kind, int groups) {
  Groups& all = machine().current->later[static_cast<std::size_t>(kind)];
  for (; std::ssize(all) - 1 > groups; all.pop_front())
    for (const auto& work : all.front()) work();
}

void begin_phases(void* barrier, int arrivals) {
  CountingBarrier& counting = machine().counting[barrier];
  counting.arrivals = counting.missing = arrivals;
}
void arrive(void* barrier, std::int64_t bytes) {
  CountingBarrier& counting = machine().counting.at(barrier);
  CHECK(counting.missing > 0, "more arrivals than a phase has");
  --counting.missing;
  counting.bytes += bytes;
  counting.pass_if_complete();
}
void copy_counted(void* barrier, std::int64_t bytes, std::function<void()> copy) {
  CountingBarrier& counting = machine().counting.at(barrier);
  counting.copies.emplace_back(bytes, std::move(copy));
  counting.pass_if_complete();
}
void wait_phase(void* barrier, std::uint64_t phase) {
  CountingBarrier& counting = machine().counting.at(barrier);
  Fiber& fiber = *machine().current;
  CHECK(phase <= counting.phase.passed && phase + 1 >= counting.phase.passed, "phase {} of a barrier that is in {}", phase,
        counting.phase.passed);
  ++counting.waiting;
  if (counting.phase.passed == phase) counting.pass_if_complete();
  if (counting.phase.passed == phase) {
    fiber.waits = &counting.phase;
    fiber.seen = phase;
    to_scheduler(fiber);
    fiber.waits = nullptr;
  }
  --counting.waiting;
}

const std::byte* warp_exchange(const void* mine, std::size_t bytes) {
  Fiber& fiber = *machine().current;
  CHECK(bytes <= kExchangeBytes);
  std::byte* slots = fiber.warp->slots[fiber.exchanges++ % 2];
  std::memcpy(slots + static_cast<std::size_t>(fiber.lane) * kExchangeBytes, mine, bytes);
  wait(fiber.warp->barrier);
  return slots;
}

float half_to_float(std::uint16_t bits) { return to_f32(Float16{bits}); }
std::uint16_t float_to_half(float x) { return to_f16(x).bits; }
std::uint16_t float_to_bfloat(float x) { return to_bf16(x).bits; }

}  // namespace octavo::cuda::emulated
