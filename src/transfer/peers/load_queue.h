// Threads that load blocks for a fetcher, one task each at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "transfer/kv_connector.h"

namespace octavo {

class LoadQueue {
 public:
  static constexpr std::size_t kThreads = 4;
  // Loads the blocks of the task, and adds them to the result. worker: index of the calling thread.
  using Load = std::function<Result<>(std::size_t worker, const LoadTask&, LoadResult&)>;
  using OnResult = std::function<void(LoadResult)>;

  // The threads call `done` once for each task that has blocks.
  LoadQueue(Load load, OnResult done);
  // Waits for the running loads, and drops waiting tasks without calling `done`.
  ~LoadQueue();

  void post(LoadTask task);
  // Tells the threads to end after their current task.
  void stop();
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  void run(std::size_t worker);
  LoadTask take_next();

  const Load load_;
  const OnResult done_;
  std::mutex mutex_;  // guards tasks_
  std::condition_variable arrived_;
  std::deque<LoadTask> tasks_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octavo
