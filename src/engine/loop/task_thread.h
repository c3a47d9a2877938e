// A thread that runs posted tasks one after another.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace octavo {

template <class Task>
class TaskThread {
 public:
  explicit TaskThread(std::function<void(Task&)> work) : work_(std::move(work)), thread_([this] { run(); }) {}

  // Waits for the running task, and drops the tasks that have not started.
  ~TaskThread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_one();
    thread_.join();
  }

  void post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    arrived_.notify_one();
  }

  template <class Which>
  void forget(Which&& which) {
    const std::lock_guard lock(mutex_);
    std::erase_if(tasks_, which);
  }

  // Returns whether no task waits. A task may be running.
  bool idle() const {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      work_(task);
      lock.lock();
    }
  }

  const std::function<void(Task&)> work_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Task> tasks_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace octavo
