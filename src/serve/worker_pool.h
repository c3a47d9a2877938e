// Threads for work that would block an event loop or the engine, such as parsing, tokenising and writing
// text.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

// Tasks start in the order in which they were posted.
class WorkerPool {
 public:
  using Task = std::function<void()>;

  // queue_max: number of waiting tasks at which try_post() refuses new tasks.
  WorkerPool(int threads, std::size_t queue_max);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns false if too many tasks are waiting or the pool has stopped.
  bool try_post(Task task);
  // Adds a task even if queue_max tasks are waiting; the caller must limit the number of tasks. After stop(),
  // the task is dropped.
  void post(Task task);
  // Drops waiting tasks, and returns when the running tasks have ended. A task must not call stop().
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
