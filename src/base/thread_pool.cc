#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/futex.h"

namespace octavo {
namespace {

// Spins before a thread sleeps, about 50 us: longer than the gaps between the operators of a step, but
// short enough that an idle engine uses no CPU time.
constexpr int kSpins = 4000;

constexpr std::int32_t kStop = -1;

}  // namespace

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1, "threads = {}", threads);
  helpers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int rank = 1; rank < threads; ++rank) helpers_.emplace_back([this, rank] { helper_loop(rank); });
}

ThreadPool::~ThreadPool() {
  publish(kStop);
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
  publish(static_cast<std::int32_t>(count));
  work(0);
  for (int spins = 0; spins < kSpins; ++spins) {
    if (unfinished_.load(std::memory_order_acquire) == 0) return;
    spin_pause();
  }
  caller_sleeps_.store(true);
  while (const std::int32_t unfinished = unfinished_.load()) futex_wait(unfinished_, unfinished);
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

// Lets the helpers see the units of a job, or kStop. A helper first counts itself in sleeping_helpers_ and
// then checks untaken_, in one order for all threads, so that none sleeps through a job.
void ThreadPool::publish(std::int32_t untaken) {
  untaken_.store(untaken);
  if (sleeping_helpers_.load() > 0) futex_wake_all(untaken_);
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
  if (done > 0 && unfinished_.fetch_sub(done) == done && caller_sleeps_.load()) futex_wake_all(unfinished_);
}

void ThreadPool::helper_loop(int rank) {
  for (;;) {
    std::int32_t left = 0;
    for (int spins = 0; (left = untaken_.load(std::memory_order_relaxed)) == 0 && spins < kSpins; ++spins)
      spin_pause();
    if (left == kStop) return;
    if (left == 0) {
      sleeping_helpers_.fetch_add(1);
      futex_wait(untaken_, 0);
      sleeping_helpers_.fetch_sub(1, std::memory_order_relaxed);
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
