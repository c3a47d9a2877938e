// Detects a step that hangs, and distinguishes it from a slow step. The server restarts an engine that
// hangs.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace octavo {

// Time limits after which a step counts as hung.
//
// On a CPU, a step hangs if its thread has used no CPU time for quiet_us although no thread of the process
// had to wait for a processor. A slow step uses CPU time or, on a busy machine, waits for a processor.
//
// On a GPU, the host thread only waits or spins, so its CPU time says nothing. The limit device_step_us is
// far above the duration of the longest step.
struct StepWatchRule {
  std::int64_t quiet_us = 1'500'000;
  std::int64_t device_step_us = 30'000'000;
};

class StepProgress {
 public:
  explicit StepProgress(const StepWatchRule& rule, bool device) : rule_(rule), device_(device) {}

  // Returns whether the step hangs. `step` is the number of the running step, or 0. `cpu_us` is the total
  // CPU time of the step's thread. waited_us() returns the total time for which the threads of the process
  // have waited for a processor. It is called only if the step's thread has used no CPU time since the last
  // call.
  bool hangs(std::uint64_t step, std::int64_t now_us, std::int64_t cpu_us, std::int64_t (*waited_us)());

 private:
  // A thread that only wakes up and waits again uses at most this CPU time between two calls.
  static constexpr std::int64_t kUsedUs = 100;

  StepWatchRule rule_;
  bool device_;
  std::uint64_t step_ = 0;
  std::int64_t step_began_us_ = 0;
  std::int64_t last_used_us_ = 0;
  std::int64_t cpu_us_ = 0;
  std::int64_t looked_us_ = 0;
  // result of waited_us() at the last call; nullopt if the thread was using CPU time
  std::optional<std::int64_t> waited_us_;
};

// Checks a thread several times a second, from a separate thread. The watched thread marks the beginning
// and the end of each step.
class StepWatch {
 public:
  StepWatch(const StepWatchRule& rule, bool device) : rule_(rule), progress_(rule, device) {}
  ~StepWatch() { stop(); }

  void start();  // call it on the thread to watch
  void stop();
  void begin_step() { step_.fetch_add(1, std::memory_order_relaxed); }
  void end_step() { ended_.store(step_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

  // Thread-safe.
  bool hangs() const { return hangs_.load(std::memory_order_relaxed); }

 private:
  void look_on();

  const StepWatchRule rule_;
  StepProgress progress_;
  clockid_t cpu_clock_{};
  std::atomic<std::uint64_t> step_{0}, ended_{0};
  std::atomic<bool> hangs_{false};
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo
