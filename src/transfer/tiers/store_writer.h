// Writes KV blocks to a tier in the background, one StoreTask after another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "transfer/kv_connector.h"
#include "transfer/tiers/flush_limit.h"

namespace octavo {

class StoreWriter {
 public:
  // write: writes the task's blocks until gives_up() is true; called on the writer's thread. blocks_max:
  // maximum number of waiting blocks; a single task may have more. wake: called after each task.
  StoreWriter(std::size_t blocks_max, std::function<void(const StoreTask&)> write,
              std::function<void()> wake);
  // Writes the pending tasks, for at most FlushLimit::kUs microseconds.
  ~StoreWriter();

  // Queues a task. If too many blocks wait, it completes the task without writing it, and returns false.
  bool post(StoreTask task);
  std::vector<std::uint64_t> take_stored();
  // Completes the waiting tasks without writing them, and ends the running task after its next block. Returns
  // false if no task waits or runs.
  bool give_way();
  bool gives_up() const { return give_up_ || flush_.is_over(); }

 private:
  void loop();

  const std::size_t blocks_max_;
  const std::function<void(const StoreTask&)> write_;
  const std::function<void()> wake_;
  std::atomic<bool> give_up_ = false;  // whether the running task must end
  FlushLimit flush_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable came_;
  std::deque<StoreTask> stores_;
  std::size_t blocks_waiting_ = 0;     // number of blocks in stores_ and in the running task
  std::vector<std::uint64_t> stored_;  // owners of completed tasks

  std::thread thread_;
};

}  // namespace octavo
