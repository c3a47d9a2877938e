// Tells a step that hangs from one that takes long.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace octavo {

// The rule. A step hangs when, since `quiet_us`, its thread has not used the processor: then it waits for
// something that does not come. A thread that computes uses it, however long the step and however busy the
// machine. A device that works by itself leaves its host thread waiting, or spinning: there a step hangs
// after `device_step_us`, many times what the largest takes.
struct StepWatchRule {
  std::int64_t quiet_us = 1'500'000;
  std::int64_t device_step_us = 30'000'000;
};

// The rule, applied to looks at the clocks: plain arithmetic.
class StepProgress {
 public:
  explicit StepProgress(const StepWatchRule& rule, bool device) : rule_(rule), device_(device) {}

  // step: which step runs, 0 for none. cpu_us: processor time that its thread has used in all. True: it
  // hangs.
  bool hangs(std::uint64_t step, std::int64_t now_us, std::int64_t cpu_us);

 private:
  static constexpr std::int64_t kUsedUs = 100;  // less is the noise of waking up

  StepWatchRule rule_;
  bool device_;
  std::uint64_t step_ = 0;
  std::int64_t step_began_us_ = 0;
  std::int64_t last_used_us_ = 0;
  std::int64_t cpu_us_ = 0;
};

// Looks several times a second, on a thread of its own, while the watched one tells when steps begin and end.
class StepWatch {
 public:
  StepWatch(const StepWatchRule& rule, bool device) : rule_(rule), progress_(rule, device) {}
  ~StepWatch() { stop(); }

  void start();  // on the thread to be watched
  void stop();
  void begin_step() { step_.fetch_add(1, std::memory_order_relaxed); }
  void end_step() { ended_.store(step_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

  // Any thread.
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
