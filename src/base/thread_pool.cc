#include "base/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "base/check.h"

namespace octavo {
namespace {

// About 50 microseconds: longer than the gaps between operators of a step, short enough that an idle engine
// costs nothing.
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1, "threads = {}", threads);
  helpers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int rank = 1; rank < threads; ++rank) helpers_.emplace_back([this, rank] { helper_loop(rank); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(void (*job)(void*, int), void* context) {
  if (!helpers_.empty()) {
    job_ = job;
    context_ = context;
    unfinished_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  job(context, 0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      sched_yield();
    }
  }
}

void ThreadPool::helper_loop(int rank) {
  std::uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
      pause();
    generation_.wait(seen, std::memory_order_acquire);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    job_(context_, rank);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

int usable_processors() {
  cpu_set_t allowed;
  int count = 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
  // cgroup v2: "quota period" in microseconds, or "max period".
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    const double share = std::strtod(quota.c_str(), nullptr) / period;
    count = std::min(count, std::max(1, static_cast<int>(std::ceil(share))));
  }
  return std::max(count, 1);
}

}  // namespace octavo
