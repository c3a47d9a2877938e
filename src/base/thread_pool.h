// Compute threads for data-parallel jobs, one job at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace octavo {

// A job has a number of units. The caller and the helper threads take the next free unit until none is
// left. The caller does not wait for helpers without a unit, so a helper that sleeps or is descheduled
// delays nothing. Between jobs, helpers first spin, because the next operator usually follows within
// microseconds, and then sleep.
//
// Only one thread at a time, the engine's thread, may start jobs. A job must not start another job on the
// same pool.
class ThreadPool {
 public:
  // threads: includes the caller; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(rank, unit) once for each unit in [0, count), in ascending order on each thread. rank: index
  // of the thread; 0 is the caller. Which thread gets which unit varies between calls. Allocates no memory.
  template <class Body>
  void for_units(std::int64_t count, Body&& body) {
    run_units(count, Taking::single, std::forward<Body>(body));
  }

  // Calls body(begin, end) for consecutive ranges of `grain` items of [0, count). All ranges should cost
  // about the same. The boundaries are fixed, unless one thread does all the work.
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
  // guided: a thread first takes many neighbouring units, so that it reads memory sequentially and rarely
  // accesses the shared counter. Later it takes single units, so that all threads end at the same time
  // (guided self-scheduling, Polychronopoulos and Kuck 1987).
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
  // The current job. Only a thread with a unit may read it, because the job cannot end before the unit is
  // done.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  // A thread takes 1 / share_ of the remaining units, and at least one. A thread may still read the value
  // of the previous job, which only makes the distribution a little less even.
  std::atomic<std::int32_t> share_{1};
  // units that no thread has taken; kStop: no more jobs
  alignas(64) std::atomic<std::int32_t> untaken_{0};
  alignas(64) std::atomic<std::int32_t> unfinished_{0};
};

// Returns the number of processors in the affinity mask, limited by the CPU quota of the cgroup; at least
// 1.
int usable_processors();

}  // namespace octavo
