// A queue between threads that has a limit, so that a full house is an answer and not an out-of-memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace octavo {

// Many producers, one consumer. try_push never waits: it says false when the queue is full or closed.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // Moves from item only on success.
  bool try_push(T&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Moves everything there is into `out` (appended); with wait, sleeps until there is something, wake() or
  // close().
  void drain(std::vector<T>& out, bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) ready_.wait(lock, [&] { return !items_.empty() || closed_ || woken_; });
    woken_ = false;
    for (T& item : items_) out.push_back(std::move(item));
    items_.clear();
  }

  // Makes a waiting drain() return, with or without items.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    ready_.notify_one();
  }

  // From now on try_push says false. What is inside can still be drained.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  std::size_t capacity_;
  bool closed_ = false;
  bool woken_ = false;
};

}  // namespace octavo
