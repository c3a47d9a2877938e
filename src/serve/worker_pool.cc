#include "serve/worker_pool.h"

#include <limits>
#include <utility>

#include "base/check.h"
#include "base/processors.h"

namespace octavo {

WorkerPool::WorkerPool(int threads, std::size_t queue_max) : queue_max_(queue_max) {
  CHECK(threads >= 1, "a worker pool needs at least one thread, got {}", threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::try_post(Task task) { return push(std::move(task), queue_max_); }
void WorkerPool::post(Task task) { push(std::move(task), std::numeric_limits<std::size_t>::max()); }

bool WorkerPool::push(Task&& task, std::size_t limit) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= limit) return false;
    tasks_.push_back(std::move(task));
  }
  ready_.notify_one();
  return true;
}

void WorkerPool::stop() {
  // Tasks are destroyed after mutex_ is unlocked, because the destructor of an object that a task owns may
  // call post().
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  ready_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void WorkerPool::run() {
  shorten_slice();
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace octavo
