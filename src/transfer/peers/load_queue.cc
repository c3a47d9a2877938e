#include "transfer/peers/load_queue.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/priority.h"

namespace octavo {

LoadQueue::LoadQueue(Load load, OnResult done) : load_(std::move(load)), done_(std::move(done)) {
  for (std::size_t worker = 0; worker < kThreads; ++worker)
    threads_.emplace_back([this, worker] { run(worker); });
}

LoadQueue::~LoadQueue() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void LoadQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
}

void LoadQueue::post(LoadTask task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  arrived_.notify_one();
}

// Tasks with blocks are first, because requests wait for them. The other tasks only end leases, which is less
// urgent, because leases also expire.
LoadTask LoadQueue::take_next() {
  auto next = std::ranges::find_if(tasks_, [](const LoadTask& each) { return !each.blocks.empty(); });
  if (next == tasks_.end()) next = tasks_.begin();
  LoadTask task = std::move(*next);
  tasks_.erase(next);
  return task;
}

void LoadQueue::run(std::size_t worker) {
  // Copies must not slow down the steps of running requests.
  lower_priority(kMoves);
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const LoadTask task = take_next();
    lock.unlock();
    LoadResult result{.id = task.id};
    const std::int64_t began = now_us();
    const Result<> loaded = load_(worker, task, result);
    result.seconds = static_cast<double>(now_us() - began) * 1e-6;
    if (!loaded) {
      if (!result.failure) result.failure = failure_of(loaded.error().code);
      result.message = loaded.error().message;
    }
    if (!task.blocks.empty()) done_(std::move(result));
    lock.lock();
  }
}

}  // namespace octavo
