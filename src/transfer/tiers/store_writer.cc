#include "transfer/tiers/store_writer.h"

#include <utility>

#include "base/log.h"
#include "base/priority.h"

namespace octavo {

StoreWriter::StoreWriter(std::size_t blocks_max, std::function<void(const StoreTask&)> write,
                         std::function<void()> wake)
    : blocks_max_(blocks_max),
      write_(std::move(write)),
      wake_(std::move(wake)),
      thread_([this] { loop(); }) {}

StoreWriter::~StoreWriter() {
  {
    const std::lock_guard lock(mutex_);
    flush_.begin();
  }
  arrived_.notify_all();
  thread_.join();
  if (blocks_waiting_ > 0)
    log_warning("lost {} KV blocks: the tier did not store them within {} ms at the end", blocks_waiting_,
                FlushLimit::kUs / 1000);
}

bool StoreWriter::post(StoreTask task) {
  const std::lock_guard lock(mutex_);
  if (blocks_waiting_ != 0 && blocks_waiting_ + task.blocks.size() > blocks_max_) {
    stored_.push_back(task.owner);
    return false;
  }
  blocks_waiting_ += task.blocks.size();
  stores_.push_back(std::move(task));
  arrived_.notify_one();
  return true;
}

std::vector<std::uint64_t> StoreWriter::take_stored() {
  const std::lock_guard lock(mutex_);
  return std::exchange(stored_, {});
}

bool StoreWriter::give_way() {
  const std::lock_guard lock(mutex_);
  give_up_ = true;
  if (stores_.empty()) return false;
  for (const StoreTask& task : stores_) {
    stored_.push_back(task.owner);
    blocks_waiting_ -= task.blocks.size();
  }
  stores_.clear();
  return true;
}

void StoreWriter::loop() {
  lower_priority(kPrepares);
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return flush_.begun() || !stores_.empty(); });
    if (stores_.empty() || flush_.is_over()) return;
    const StoreTask task = std::move(stores_.front());
    stores_.pop_front();
    give_up_ = false;
    lock.unlock();
    write_(task);
    lock.lock();
    blocks_waiting_ -= task.blocks.size();
    stored_.push_back(task.owner);
    wake_();
  }
}

}  // namespace octavo
