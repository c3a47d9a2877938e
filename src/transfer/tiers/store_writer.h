// Writes stores of KV blocks in the background, one after the other.
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
  // write: writes a store's blocks until gives_up(); called on the writer's thread. blocks_max: maximum
  // number of blocks that wait, except for a single store. wake: called after each store.
  StoreWriter(std::size_t blocks_max, std::function<void(const StoreTask&)> write,
              std::function<void()> wake);
  // Writes the pending stores first, for at most FlushLimit::kUs.
  ~StoreWriter();

  // False: too many blocks wait, and the store is completed without a write.
  bool post(StoreTask task);
  // Owners of completed stores.
  std::vector<std::uint64_t> take_stored();
  // Completes the stores that wait, and ends the one being written after its next block. False: none waits.
  bool give_way();
  bool gives_up() const { return give_up_ || flush_.is_over(); }

 private:
  void loop();

  const std::size_t blocks_max_;
  const std::function<void(const StoreTask&)> write_;
  const std::function<void()> wake_;
  std::atomic<bool> give_up_ = false;  // cancels the store being written
  FlushLimit flush_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable came_;
  std::deque<StoreTask> stores_;
  std::size_t blocks_waiting_ = 0;     // blocks of stores_ and of the store being written
  std::vector<std::uint64_t> stored_;  // owners of completed stores

  std::thread thread_;
};

}  // namespace octavo
