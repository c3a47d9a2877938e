// A fixed team of compute threads that run one data-parallel job at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace octavo {

// run(job) calls job(rank) once on every thread, rank 0 on the caller, and returns when all have finished.
// Between jobs the helpers spin for a short while, because the next operator usually follows within
// microseconds, and then sleep.
//
// One thread at a time may call run(); the engine thread owns the pool. A job must not call run() of the same
// pool.
class ThreadPool {
 public:
  // threads >= 1 counts the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Runs job(rank) on every thread. A plain function pointer and context, so that a call allocates nothing.
  void run(void (*job)(void* context, int rank), void* context);

  template <class Job>
  void run(Job&& job) {
    auto* pointer = &job;
    run([](void* context, int rank) { (*static_cast<decltype(pointer)>(context))(rank); }, pointer);
  }

  // Calls body(begin, end) for consecutive pieces of [0, count), pieces of `grain` items handed out as
  // threads come free. Which thread gets which piece varies; where a piece begins does not.
  template <class Body>
  void for_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
    if (count <= 0) return;
    if (size() == 1 || count <= grain) return body(std::int64_t{0}, count);
    std::atomic<std::int64_t> next{0};
    run([&](int) {
      for (;;) {
        const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) return;
        body(begin, begin + grain < count ? begin + grain : count);
      }
    });
  }

 private:
  void helper_loop(int rank);

  std::vector<std::thread> helpers_;
  void (*job_)(void*, int) = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<int> unfinished_{0};
  std::atomic<bool> stopping_{false};
};

// The number of processors this process may use: its affinity mask, capped by its cgroup's CPU quota; at
// least 1.
int usable_processors();

}  // namespace octavo
