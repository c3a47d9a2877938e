// A fixed team of compute threads that run one data-parallel job at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace octavo {

// A job is a number of units. The caller and the helpers each take the next free unit. The job ends when all
// units are done, even if a helper never took part: a sleeping or descheduled helper delays nothing. Between
// jobs the helpers spin briefly, because the next operator usually follows within microseconds, and then
// sleep.
//
// One thread at a time may start jobs; the engine thread owns the pool. A job must not start another one on
// the same pool.
class ThreadPool {
 public:
  // threads >= 1 includes the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(rank, unit) once for each unit in [0, count), in ascending order on each thread. rank, below
  // size(), is the thread; 0 is the caller. The assignment of units to threads varies. Allocates nothing.
  template <class Body>
  void for_units(std::int64_t count, Body&& body) {
    run_units(count, Taking::single, std::forward<Body>(body));
  }

  // Calls body(begin, end) for consecutive pieces of [0, count) of `grain` items; all pieces should cost
  // about the same. The boundaries are fixed, unless one thread does everything.
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
  // guided: a thread first takes many neighbouring units, so that it reads sequentially and rarely touches
  // the counter's cache line; later it takes single units, so that all threads end together (guided
  // self-scheduling, Polychronopoulos and Kuck 1987).
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
  // The current job. Only a thread that holds a unit may read it: the job cannot end before that unit is
  // done.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  // A thread takes 1 / share_ of the remaining units, at least one. A thread without a unit may read the
  // previous job's value; this costs at most some balance.
  std::atomic<std::int32_t> share_{1};
  alignas(64) std::atomic<std::int32_t> untaken_{0};  // units left; kStop: no more jobs
  alignas(64) std::atomic<std::int32_t> unfinished_{0};
};

// Number of processors that this process may use: its affinity mask, limited by its cgroup's CPU quota; at
// least 1.
int usable_processors();

}  // namespace octavo
