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

// A job is a number of units, which the caller and the helpers take as they come. It has ended when its units
// are done, whether or not every helper has come: one that sleeps, or that the system runs something else on,
// holds nobody up. Between jobs the helpers spin for a short while, because the next operator usually follows
// within microseconds, and then sleep.
//
// One thread at a time may start jobs; the engine thread owns the pool. A job must not start another on the
// same pool.
class ThreadPool {
 public:
  // threads >= 1 counts the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(rank, unit) once for each unit in [0, count), in order on each thread; rank, below size(),
  // says which thread it is, 0 being the caller. Which thread gets which unit varies. Allocates nothing.
  template <class Body>
  void for_units(std::int64_t count, Body&& body) {
    run_units(count, Taking::single, std::forward<Body>(body));
  }

  // Calls body(begin, end) for consecutive pieces of [0, count) of `grain` items, which take about as long
  // each. Where a piece begins does not vary, unless one thread does it all.
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
  // guided: many neighbouring units at first, so that a thread reads on where it stands and seldom asks for
  // the counter's cache line, single ones at last, so that all end together (guided self-scheduling,
  // Polychronopoulos and Kuck 1987).
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
  // The job at hand. Only who has taken a unit may look: until that is done, the job cannot end.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  // Of the untaken units a thread takes one in so many, one at least. Read by who has none yet: it may be the
  // last job's, which costs some balance at most.
  std::atomic<std::int32_t> share_{1};
  alignas(64) std::atomic<std::int32_t> untaken_{0};  // units; kStop: no more jobs
  alignas(64) std::atomic<std::int32_t> unfinished_{0};
};

// The number of processors this process may use: its affinity mask, capped by its cgroup's CPU quota; at
// least 1.
int usable_processors();

}  // namespace octavo
