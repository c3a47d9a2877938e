// A fixed number of compute threads that run one data-parallel job at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace octavo {

// A job consists of a number of units. The caller and the helper threads each take the next free unit. The
// job ends when all units are done, even if a helper took none: so a helper that sleeps or is descheduled
// delays nothing. Between jobs the helpers first spin, because the next operator usually follows within
// microseconds, and then sleep.
//
// Only one thread at a time may start jobs; this is the engine's thread. A job must not start another job on
// the same pool.
class ThreadPool {
 public:
  // threads: at least 1; includes the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(rank, unit) once for each unit in [0, count). Each thread gets its units in ascending order.
  // rank: index of the thread, below size(); 0 is the caller. The assignment of units to threads varies
  // between calls. Allocates no memory.
  template <class Body>
  void for_units(std::int64_t count, Body&& body) {
    run_units(count, Taking::single, std::forward<Body>(body));
  }

  // Calls body(begin, end) for consecutive pieces of [0, count). A piece has `grain` items; all pieces
  // should cost about the same. The boundaries are fixed, unless one thread does all the work.
  template <class Body>
  void for_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
    if (count <= 0) return;
    if (size() == 1 || count <= grain) return body(std::int64_t{0}, count);
    run_units((count + grain - 1) / grain, Taking::guided, [&](int, std::int64_t unit) {
      const std::int64_t begin = unit * grain;
      body(begin, begin + grain < count ? begin + grain : count);
    });
  }

 private:
  // How a thread takes units. guided: at first it takes many neighbouring units, so that it reads memory
  // sequentially and rarely accesses the counter's cache line. Later it takes single units, so that all
  // threads end at the same time (guided self-scheduling, Polychronopoulos and Kuck 1987).
  enum class Taking : std::uint8_t { single, guided };
  using Job = void (*)(void* context, int rank, std::int64_t unit);

  template <class Body>
  void run_units(std::int64_t count, Taking taking, Body&& body) {
    if (size() == 1 || count <= 1) {
      for (std::int64_t unit = 0; unit < count; ++unit) body(0, unit);
      return;
    }
    auto* pointer = &body;
    run([](void* context, int rank,
           std::int64_t unit) { (*static_cast<decltype(pointer)>(context))(rank, unit); },
        pointer, count, taking);
  }
  void run(Job job, void* context, std::int64_t count, Taking taking);
  void work(int rank);
  void helper_loop(int rank);

  std::vector<std::thread> helpers_;
  // The current job. Only a thread that has a unit may read it, because the job cannot end before this unit
  // is done.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  // A thread takes 1 / share_ of the remaining units, but at least one. A thread without a unit may read
  // the value of the previous job; this only makes the distribution a little less even.
  std::atomic<std::int32_t> share_{1};
  alignas(64) std::atomic<std::int32_t> untaken_{0};  // number of units not taken; kStop: no more jobs
  alignas(64) std::atomic<std::int32_t> unfinished_{0};
};

// Number of processors that this process may use: its affinity mask, limited by the CPU quota of its
// cgroup; at least 1.
int usable_processors();

}  // namespace octavo
