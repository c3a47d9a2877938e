#include "kernels/cuda/emulator/language.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/emulator/memory.h"

namespace octavo::cuda::emulated {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr std::size_t kSharedAlignment = 1024;
constexpr std::size_t kLanes = 32;

// Every kCheckedEvery-th launch runs twice, unless device memory has more than kCheckedBytes.
constexpr std::uint64_t kCheckedEvery = 7;
constexpr std::size_t kCheckedBytes = std::size_t{4} << 20;

// Barrier of threads. It counts arrivals, and the last arrival releases all threads.
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

// Barrier in shared memory. `phase` increases when all expected threads and bytes have arrived.
struct CountingBarrier {
  Barrier phase;
  int arrivals = 0, missing = 0;
  std::int64_t bytes = 0;
  // copies that run when a thread waits for them
  std::vector<std::pair<std::int64_t, std::function<void()>>> copies;
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
  // Two sets of slots, used alternately. A thread that is in the next exchange has finished reading the
  // previous set.
  alignas(16) std::byte slots[2][kLanes * kExchangeBytes];
};

// Work of a thread that runs when the thread waits for it. Each group was closed by a commit, except the
// last group, which is still open.
using Groups = std::deque<std::vector<std::function<void()>>>;

// A stack on which threads run one after the other. A thread that waits keeps its stack, and the next
// thread uses another stack.
struct Fiber {
  jmp_buf context;
  std::unique_ptr<std::byte[]> stack;
};

struct Thread {
  unsigned index = 0;
  Warp* warp = nullptr;
  Fiber* fiber = nullptr;  // null before the thread starts and after it ends
  unsigned exchanges = 0;
  bool ended = false;
  bool has_waited = false;         // whether the thread has called wait_for_kernels()
  const Barrier* waits = nullptr;  // the thread waits until waits->passed > seen
  std::uint64_t seen = 0;
  std::array<Groups, 2> later{Groups(1), Groups(1)};

  bool may_run() const { return !ended && (waits == nullptr || waits->passed != seen); }
};

struct Machine {
  std::mutex busy;
  jmp_buf host;  // context of the host thread that runs the thread block
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;  // fibers on which no thread runs
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier block;
  std::array<Barrier, 16> named;
  std::map<const void*, CountingBarrier> counting;
  Thread* current = nullptr;
  const std::function<void()>* body = nullptr;
  std::unique_ptr<std::byte[]> shared;
  unsigned char* shared_begin = nullptr;
  std::vector<void*> entered;      // static variables that a thread of the block has reached
  std::vector<std::size_t> order;  // order in which threads run; the threads of a warp are adjacent
  std::size_t turn = 0;            // index in `order` of the next thread
  int left = 0;
  std::uint64_t launches = 0;
  std::vector<std::byte> before, after;  // contents of memory before and after a launch that runs twice
};
Machine& machine() {
  static Machine m;
  return m;
}

[[noreturn]] void go_on();

// Selects the next thread that can run; selects no thread if all have ended. Threads of the same warp come
// first, because their data is in the CPU cache.
void take_turn() {
  Machine& m = machine();
  m.current = nullptr;
  for (std::size_t i = 0; i < m.order.size() && m.left > 0; ++i) {
    const std::size_t warp = m.turn / kLanes;
    const std::size_t next = i % kLanes == kLanes - 1 ? (warp + 1) * kLanes : warp * kLanes + (m.turn + 1) % kLanes;
    Thread& thread = m.threads[m.order[m.turn]];
    m.turn = next % m.order.size();
    if (!thread.may_run()) continue;
    m.current = &thread;
    break;
  }
  if (m.current == nullptr) {
    CHECK(m.left == 0, "a barrier that some threads of the block never reach");
    return;
  }
  running.thread.x = m.current->index;
  running.lane = static_cast<int>(m.current->index % kLanes);
}

// Main function of a fiber. It runs the threads that start on the fiber, one after the other.
void live() {
  Machine& m = machine();
  for (;;) {
    (*m.body)();
    Thread& thread = *m.current;
    for (const Groups& groups : thread.later)
      CHECK(groups.size() == 1 && groups[0].empty(), "a thread that ends with work under way");
    CHECK(thread.has_waited, "a thread that has not waited for the kernels before its own");
    thread.ended = true;
    --m.left;
    // A barrier does not wait for a thread that has ended.
    for (Barrier* barrier : {&thread.warp->barrier, &m.block}) {
      --barrier->members;
      barrier->release_if_full();
    }
    Fiber* const fiber = std::exchange(thread.fiber, nullptr);
    take_turn();
    if (m.current != nullptr && m.current->fiber == nullptr) {
      m.current->fiber = fiber;
      continue;
    }
    m.idle.push_back(fiber);
    if (_setjmp(fiber->context) == 0) go_on();
  }
}

// Switches to the current thread, on its fiber or on an idle fiber. If all threads have ended, switches to
// the host.
[[noreturn]] void go_on() {
  Machine& m = machine();
  if (m.current == nullptr) _longjmp(m.host, 1);
  if (m.current->fiber == nullptr && !m.idle.empty()) {
    m.current->fiber = m.idle.back();
    m.idle.pop_back();
  }
  if (m.current->fiber != nullptr) _longjmp(m.current->fiber->context, 1);
  m.fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *m.fibers.back();
  fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  m.current->fiber = &fiber;
  ucontext_t context;
  CHECK(getcontext(&context) == 0);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  setcontext(&context);
  std::abort();
}

// Runs other threads until the barrier has completed more than `seen` times.
void wait_until_passed(const Barrier& barrier, std::uint64_t seen) {
  Thread& thread = *machine().current;
  thread.waits = &barrier;
  thread.seen = seen;
  take_turn();
  if (_setjmp(thread.fiber->context) == 0) go_on();
  thread.waits = nullptr;
}

void wait(Barrier& barrier) {
  const std::uint64_t seen = barrier.passed;
  ++barrier.arrived;
  barrier.release_if_full();
  if (barrier.passed == seen) wait_until_passed(barrier, seen);
}

Barrier& named(int id, int threads) {
  Barrier& barrier = machine().named.at(static_cast<std::size_t>(id));
  CHECK(id > 0 && threads % static_cast<int>(kLanes) == 0 && (barrier.arrived == 0 || barrier.members == threads),
        "barrier {} of {} threads", id, threads);
  barrier.members = threads;
  return barrier;
}

// Returns a random order of the warps, and of the threads within each warp.
std::vector<std::size_t> order_of_chance(std::size_t warps, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::size_t> first(warps), order;
  for (std::size_t w = 0; w < warps; ++w) first[w] = w * kLanes;
  std::ranges::shuffle(first, random);
  for (const std::size_t begin : first) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) order.push_back(begin + lane);
    std::shuffle(order.end() - kLanes, order.end(), random);
  }
  return order;
}

void run_block(int threads) {
  Machine& m = machine();
  m.block = {.members = threads};
  m.named = {};
  m.counting.clear();
  for (std::size_t w = 0; w < m.warps.size(); ++w) m.warps[w].barrier = {.members = kLanes};
  for (std::size_t t = 0; t < m.threads.size(); ++t) {
    Thread& thread = m.threads[t];
    thread.exchanges = 0;
    thread.ended = thread.has_waited = false;
  }
  m.left = threads;
  m.turn = 0;
  take_turn();
  if (_setjmp(m.host) == 0) go_on();
}

void run_blocks(dim3 grid, int threads, std::size_t shared_bytes, bool backwards) {
  Machine& m = machine();
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = backwards ? blocks - 1 - i : i;
    running.block =
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
  CHECK(grid.y <= 65535 && grid.z <= 65535 && shared_bytes <= shared_bytes_max(),
        "grid {} x {} x {}, {} bytes shared of at most {}", grid.x, grid.y, grid.z, shared_bytes,
        shared_bytes_max());
  m.warps.resize(static_cast<std::size_t>(threads) / kLanes);
  m.threads.resize(static_cast<std::size_t>(threads));
  for (std::size_t t = 0; t < m.threads.size(); ++t) {
    m.threads[t].index = static_cast<unsigned>(t);
    m.threads[t].warp = &m.warps[t / kLanes];
  }
  m.body = &body;
  running.block_size = dim3(static_cast<unsigned>(threads));
  // The shared memory ends at the end of an allocation, so that a sanitizer detects accesses beyond its end.
  const std::size_t room = (shared_bytes + 15) / 16 * 16;
  m.shared = std::make_unique_for_overwrite<std::byte[]>(room + kSharedAlignment + 16);
  const auto address = reinterpret_cast<std::uintptr_t>(m.shared.get());
  m.shared_begin = reinterpret_cast<unsigned char*>(m.shared.get()) + (kSharedAlignment - address % kSharedAlignment);
  m.order = order_of_chance(m.warps.size(), static_cast<unsigned>(++m.launches));

  const bool checked = m.launches % kCheckedEvery == 0 && device_bytes() <= kCheckedBytes;
  if (checked) copy_device_contents(m.before);
  run_blocks(grid, threads, room, false);
  if (!checked) return;
  copy_device_contents(m.after);
  set_device_contents(m.before);
  std::ranges::reverse(m.order);
  run_blocks(grid, threads, room, true);
  copy_device_contents(m.before);
  CHECK(m.before == m.after, "a race: the result depends on the order of threads or blocks");
}

void enter_shared(void* variable, std::size_t bytes) {
  std::vector<void*>& entered = machine().entered;
  if (std::ranges::find(entered, variable) != entered.end()) return;
  entered.push_back(variable);
  std::memset(variable, 0xff, bytes);
}

unsigned char* shared_memory() { return machine().shared_begin; }

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
  CHECK(phase <= counting.phase.passed && phase + 1 >= counting.phase.passed, "phase {} of a barrier that is in {}", phase,
        counting.phase.passed);
  ++counting.waiting;
  if (counting.phase.passed == phase) counting.pass_if_complete();
  if (counting.phase.passed == phase) wait_until_passed(counting.phase, phase);
  --counting.waiting;
}

const std::byte* warp_exchange(const void* mine, std::size_t bytes) {
  Thread& thread = *machine().current;
  CHECK(bytes <= kExchangeBytes);
  std::byte* slots = thread.warp->slots[thread.exchanges++ % 2];
  std::memcpy(slots + static_cast<std::size_t>(running.lane) * kExchangeBytes, mine, bytes);
  wait(thread.warp->barrier);
  return slots;
}

}  // namespace octavo::cuda::emulated
