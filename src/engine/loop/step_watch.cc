#include "engine/loop/step_watch.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace octavo {
namespace {

std::int64_t processor_us(clockid_t clock) {
  timespec used{};
  if (clock_gettime(clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000 + used.tv_nsec / 1000;
}

// Returns the total time for which the threads of this process have waited in a run queue: the second
// number of schedstat. Returns 0 if the kernel does not count it.
std::int64_t process_waited_us() {
  std::int64_t waited_ns = 0;
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/self/task", error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    std::int64_t used_ns = 0, own_ns = 0;
    std::ifstream(thread->path() / "schedstat") >> used_ns >> own_ns;
    waited_ns += own_ns;
  }
  return waited_ns / 1000;
}

}  // namespace

bool StepProgress::hangs(std::uint64_t step, std::int64_t now_us, std::int64_t cpu_us,
                         std::int64_t (*waited_us)()) {
  const bool quiet = step == step_ && step != 0 && !device_ && cpu_us - cpu_us_ <= kUsedUs;
  if (step != step_) step_began_us_ = last_used_us_ = now_us;
  if (cpu_us - cpu_us_ > kUsedUs) {
    cpu_us_ = cpu_us;
    last_used_us_ = now_us;
  }
  const auto before = std::exchange(waited_us_, quiet ? std::optional(waited_us()) : std::nullopt);
  const std::int64_t passed_us = now_us - std::exchange(looked_us_, now_us);
  if (before && waited_us_ && 2 * (*waited_us_ - *before) > passed_us) last_used_us_ = now_us;
  step_ = step;
  if (step == 0) return false;
  if (device_) return now_us - step_began_us_ >= rule_.device_step_us;
  return now_us - last_used_us_ >= rule_.quiet_us;
}

void StepWatch::start() {
  CHECK(pthread_getcpuclockid(pthread_self(), &cpu_clock_) == 0);
  thread_ = std::thread([this] { look_on(); });
}

void StepWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StepWatch::look_on() {
  const auto interval =
      std::chrono::microseconds(std::clamp<std::int64_t>(rule_.quiet_us / 6, 1000, 250'000));
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_for(lock, interval, [this] { return stopped_; })) {
    const std::uint64_t step = step_.load(std::memory_order_relaxed);
    const bool running = ended_.load(std::memory_order_relaxed) != step;
    const bool hang =
        progress_.hangs(running ? step : 0, now_us(), processor_us(cpu_clock_), process_waited_us);
    if (hang && !hangs()) log_error("a step of the engine makes no progress");
    if (!hang && hangs()) log_warning("the step without progress continues");
    hangs_.store(hang, std::memory_order_relaxed);
  }
}

}  // namespace octavo
