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

  // try_post refuses once queue_max tasks wait.
  WorkerPool(int threads, std::size_t queue_max);
  ~WorkerPool();  // stop()
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False: too many are waiting, or the pool has stopped.
  bool try_post(Task task);
  // For work that is bounded elsewhere. Dropped after the pool has stopped.
  void post(Task task);
  // Drops waiting tasks and returns when the running ones have ended. Not to be called from a task.
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
