#include "transfer/tiers/host_blocks.h"

#include <utility>

namespace octavo {

Result<std::unique_ptr<HostBlocks>> HostBlocks::open(std::int64_t block_bytes, std::int64_t bytes_max,
                                                     EvictionPolicy policy, std::uint64_t machine_bytes,
                                                     const AllocateHost& allocate) {
  const std::int64_t most = bytes_max / block_bytes;
  if (most < 1)
    return invalid("", "{} bytes of host memory are too few, because one KV block has {} bytes", bytes_max,
                   block_bytes);
  if (machine_bytes > 0 && static_cast<std::uint64_t>(bytes_max) > machine_bytes)
    return invalid("", "{} bytes of host memory for KV blocks are more than the machine's {} bytes",
                   bytes_max, machine_bytes);
  TRY(Buffer memory, allocate(static_cast<std::size_t>(most * block_bytes)));
  return std::unique_ptr<HostBlocks>(
      new HostBlocks(block_bytes, static_cast<std::size_t>(most), policy, std::move(memory)));
}

HostBlocks::HostBlocks(std::int64_t block_bytes, std::size_t most, EvictionPolicy policy, Buffer memory)
    : block_bytes_(static_cast<std::size_t>(block_bytes)),
      memory_(std::move(memory)),
      order_(make_eviction_order(policy, most)),
      slots_(most) {}

std::span<std::byte> HostBlocks::bytes_of(std::size_t slot) const {
  return {static_cast<std::byte*>(memory_.data()) + slot * block_bytes_, block_bytes_};
}

// mutex_ must be locked.
void HostBlocks::free_slot(std::size_t slot) {
  slots_[slot] = {};
  free_.push_back(slot);
  freed_.notify_one();
}

// mutex_ must be locked. The block must not be in order_ any more.
void HostBlocks::leave_slot(Hash128 key) {
  const std::size_t slot = slot_of_.extract(key).mapped();
  removed_.push_back(key);
  if (slots_[slot].readers == 0) return free_slot(slot);
  slots_[slot].removed = true;
}

void HostBlocks::forget_all() {
  const std::lock_guard lock(mutex_);
  while (order_->size() > 0) leave_slot(order_->evict());
}

std::vector<Hash128> HostBlocks::take_removed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(removed_, {});
}

void HostBlocks::remove(std::span<const Hash128> keys) {
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys)
    if (order_->remove(key)) leave_slot(key);
}

std::vector<bool> HostBlocks::contains(std::span<const Hash128> keys) const {
  std::vector<bool> stored;
  stored.reserve(keys.size());
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys) stored.push_back(slot_of_.contains(key));
  return stored;
}

void HostBlocks::touch(std::span<const Hash128> keys) {
  const std::lock_guard lock(mutex_);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) order_->use(*key);
}

Result<> HostBlocks::read(Hash128 key, const TakeBlock& take) {
  std::size_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = slot_of_.find(key);
    if (found == slot_of_.end())
      return failure(ErrorCode::not_found, "a KV block was removed from host memory");
    slot = found->second;
    ++slots_[slot].readers;
  }
  take(bytes_of(slot));
  const std::lock_guard lock(mutex_);
  if (--slots_[slot].readers == 0 && slots_[slot].removed) free_slot(slot);
  return {};
}

// Returns a free slot. Waits while threads read or write all slots.
std::size_t HostBlocks::take_slot() {
  std::unique_lock lock(mutex_);
  while (free_.empty() && used_ == slots_.size()) {
    if (order_->size() > 0) {
      leave_slot(order_->evict());
      ++evicted_;
    } else {
      freed_.wait(lock);
    }
  }
  if (free_.empty()) return used_++;
  const std::size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

Result<> HostBlocks::write(Hash128 key, const FillBlock& fill) {
  if (contains(key)) return {};
  const std::size_t slot = take_slot();
  fill(bytes_of(slot));
  const std::lock_guard lock(mutex_);
  if (!slot_of_.try_emplace(key, slot).second) {
    free_slot(slot);  // another thread has just written the same block
  } else {
    order_->add(key);
    freed_.notify_one();  // a waiting writer can now evict this block
  }
  return {};
}

std::int64_t HostBlocks::count() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(slot_of_);
}

std::int64_t HostBlocks::evicted() const {
  const std::lock_guard lock(mutex_);
  return evicted_;
}

}  // namespace octavo
