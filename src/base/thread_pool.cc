#include "base/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "base/check.h"

namespace octavo {
namespace {

// Spins before a thread sleeps, about 50 us: longer than the gaps between the operators of a step, but
// short enough that an idle engine uses no CPU time.
constexpr int kSpins = 4000;

constexpr std::int32_t kStop = -1;

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
  untaken_.store(kStop, std::memory_order_relaxed);
  untaken_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(Job job, void* context, std::int64_t count, Taking taking) {
  CHECK(count <= std::numeric_limits<std::int32_t>::max(), "{} units", count);
  job_ = job;
  context_ = context;
  count_ = count;
  share_.store(taking == Taking::guided ? 2 * size() : std::numeric_limits<std::int32_t>::max(),
               std::memory_order_relaxed);
  unfinished_.store(static_cast<std::int32_t>(count), std::memory_order_relaxed);
  untaken_.store(static_cast<std::int32_t>(count), std::memory_order_release);
  untaken_.notify_all();
  work(0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      sched_yield();
    }
  }
}

// Takes units and runs them until none is left.
void ThreadPool::work(int rank) {
  std::int32_t done = 0;
  for (std::int32_t left = untaken_.load(std::memory_order_relaxed); left > 0;) {
    const std::int32_t taken = std::max(1, left / share_.load(std::memory_order_relaxed));
    if (!untaken_.compare_exchange_weak(left, left - taken, std::memory_order_acquire,
                                        std::memory_order_relaxed))
      continue;
    for (std::int64_t unit = count_ - left, end = unit + taken; unit < end; ++unit)
      job_(context_, rank, unit);
    done += taken;
    left = untaken_.load(std::memory_order_relaxed);
  }
  if (done > 0) unfinished_.fetch_sub(done, std::memory_order_release);
}

void ThreadPool::helper_loop(int rank) {
  for (;;) {
    std::int32_t left = 0;
    for (int spins = 0; (left = untaken_.load(std::memory_order_relaxed)) == 0 && spins < kSpins; ++spins)
      pause();
    if (left == kStop) return;
    if (left == 0) {
      untaken_.wait(0, std::memory_order_relaxed);
    } else {
      work(rank);
    }
  }
}

int usable_processors() {
  cpu_set_t allowed;
  int count = 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
  // In cgroup v2, the file has "quota period" in microseconds, or "max period".
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
