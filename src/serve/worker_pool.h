// Threads for work that would block an event loop or the engine: parsing, tokenising, writing text.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

// Tasks start in the order they were posted.
class WorkerPool {
 public:
  using Task = std::function<void()>;

  // queue_max: number of waiting tasks at which try_post refuses new ones.
  WorkerPool(int threads, std::size_t queue_max);
  ~WorkerPool();  // calls stop()
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False: too many tasks are waiting, or the pool has stopped.
  bool try_post(Task task);
  // Adds a task regardless of queue_max: the caller limits their number. After stop() tasks are dropped.
  void post(Task task);
  // Drops waiting tasks, and returns when the running ones have ended. Must not be called from a task.
  void stop();

 private:
  bool push(Task&& task, std::size_t limit);
  void run();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Task> tasks_;
  std::size_t queue_max_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octavo
