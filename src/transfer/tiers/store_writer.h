// Writes KV blocks to a tier on a background thread, one StoreTask after another.
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
  // write: writes the blocks of a task, and must stop when gives_up() is true; called on the background
  // thread. blocks_max: maximum number of blocks of all unfinished tasks. If there is no unfinished task, a
  // task of any size is accepted. wake: called after each task.
  StoreWriter(std::size_t blocks_max, std::function<void(const StoreTask&)> write,
              std::function<void()> wake);
  // Writes the queued tasks, for at most FlushLimit::kUs.
  ~StoreWriter();

  // Queues the task. If the queue is full, the task completes without a write, and post() returns false.
  bool post(StoreTask task);
  std::vector<std::uint64_t> take_stored();
  // Completes the queued tasks without writing them, and stops the running task after its current block.
  // Returns false if no task is queued.
  bool give_way();
  bool gives_up() const { return give_up_ || flush_.is_over(); }

 private:
  void loop();

  const std::size_t blocks_max_;
  const std::function<void(const StoreTask&)> write_;
  const std::function<void()> wake_;
  std::atomic<bool> give_up_ = false;
  FlushLimit flush_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable arrived_;
  std::deque<StoreTask> stores_;
  // number of blocks of the queued tasks and of the running task
  std::size_t blocks_waiting_ = 0;
  std::vector<std::uint64_t> stored_;

  std::thread thread_;
};

}  // namespace octavo
