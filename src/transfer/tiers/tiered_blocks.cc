#include "transfer/tiers/tiered_blocks.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/priority.h"

namespace octavo {

TieredBlocks::TieredBlocks(std::int64_t block_bytes, std::unique_ptr<BlockStore> host,
                           std::unique_ptr<BlockStore> below, std::function<void()> wake)
    : block_bytes_(block_bytes), host_(std::move(host)), below_(std::move(below)), wake_(std::move(wake)) {
  writer_ = std::thread([this] { write_below_loop(); });
}

TieredBlocks::~TieredBlocks() {
  {
    const std::lock_guard lock(mutex_);
    flush_.begin();
  }
  arrived_.notify_all();
  writer_.join();
  if (!to_write_.empty())
    log_warning("lost {} KV blocks: the tier below host memory did not store them within {} ms at the end",
                to_write_.size(), FlushLimit::kUs / 1000);
}

std::vector<bool> TieredBlocks::contains(std::span<const Hash128> keys) const {
  std::vector<bool> stored = host_->contains(keys);
  if (off_ || !below_->reachable() || std::ranges::find(stored, false) == stored.end()) return stored;
  const std::vector<bool> more = below_->contains(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) stored[i] = stored[i] || more[i];
  return stored;
}

std::vector<Hash128> TieredBlocks::only_below(std::span<const Hash128> keys) const {
  std::vector<Hash128> rest;
  const std::vector<bool> stored = host_->contains(keys);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!stored[i]) rest.push_back(keys[i]);
  return rest;
}

void TieredBlocks::forget_all() {
  host_->forget_all();
  below_->forget_all();
}

KvTierStats TieredBlocks::moved() const {
  const std::lock_guard lock(mutex_);
  KvTierStats moved = moved_;
  moved.off = off_;
  return moved;
}

std::vector<Hash128> TieredBlocks::take_written_below() {
  const std::lock_guard lock(mutex_);
  return std::exchange(written_, {});
}

// Called after a prompt's blocks were written or read. If the tier below lacks some of them, queues them;
// otherwise only updates the order of use. The queue has at most the number of blocks that host memory holds,
// because older blocks are no longer in host memory.
void TieredBlocks::touch(std::span<const Hash128> keys) {
  host_->touch(keys);
  if (off_) return;
  const std::vector<bool> near = host_->contains(keys), far = below_->contains(keys);
  std::vector<Hash128> those;
  {
    const std::lock_guard lock(mutex_);
    bool is_new = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (near[i] || far[i]) those.push_back(keys[i]);
      if (near[i] && !far[i]) is_new |= to_write_.insert(keys[i]).second;
    }
    if (!is_new && !waiting_.empty()) return;
    waiting_.push_back(std::move(those));
    while (waiting_.size() > 1 && to_write_.size() > host_->most()) {
      const std::vector<Hash128> first = take_waiting();
      const std::vector<bool> written = below_->contains(first);
      moved_.dropped_stores += std::ranges::count(written, false);
    }
  }
  arrived_.notify_one();
}

// mutex_ must be locked.
std::vector<Hash128> TieredBlocks::take_waiting() {
  std::vector<Hash128> first = std::move(waiting_.front());
  waiting_.pop_front();
  for (const Hash128& key : first) to_write_.erase(key);
  return first;
}

void TieredBlocks::write_below_loop() {
  lower_priority(kPrepares);
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return flush_.begun() || !waiting_.empty(); });
    if (waiting_.empty() || flush_.is_over()) return;
    const std::vector<Hash128> keys = take_waiting();
    lock.unlock();
    write_below(keys);
    lock.lock();
  }
}

void TieredBlocks::write_below(std::span<const Hash128> keys) {
  for (const Hash128& key : keys) {
    if (off_ || flush_.is_over()) return;
    if (below_->contains(key)) continue;
    const std::int64_t began = now_us();
    Result<> written = failure(ErrorCode::unavailable, "the store cannot be reached");
    Result<> read;
    if (below_->reachable())
      read = host_->read(key, [&](std::span<const std::byte> contents) {
        written =
            below_->write(key, [&](std::span<std::byte> to) { std::ranges::copy(contents, to.begin()); });
      });
    if (read && !written && written.error().code == ErrorCode::io) return turn_off(written.error());
    // A failed read on another thread has disabled the tier below.
    if (off_) return below_->forget_all();
    const std::lock_guard lock(mutex_);
    if (!read || !written) {
      ++moved_.dropped_stores;
      continue;
    }
    written_.push_back(key);
    ++moved_.stored_blocks;
    moved_.stored_bytes += block_bytes_;
    moved_.store_seconds += static_cast<double>(now_us() - began) * 1e-6;
  }
  below_->touch(keys);
  wake_();
}

void TieredBlocks::turn_off(const Error& error) {
  if (off_.exchange(true)) return;
  log_error("turned off the tier of KV blocks below host memory: {}", error.message);
  below_->forget_all();
}

Result<> TieredBlocks::read(Hash128 key, const TakeBlock& take) {
  const Result<> near = host_->read(key, take);
  if (near || off_) return near;
  const std::int64_t began = now_us();
  const Result<> read = below_->read(key, [&](std::span<const std::byte> contents) {
    take(contents);
    (void)host_->write(key, [&](std::span<std::byte> to) { std::ranges::copy(contents, to.begin()); });
  });
  if (!read && read.error().code == ErrorCode::io) {
    turn_off(read.error());
    return failure(ErrorCode::unavailable, "{}", read.error().message);
  }
  if (!read) return read;
  const std::lock_guard lock(mutex_);
  moved_.loaded_bytes += block_bytes_;
  moved_.load_seconds += static_cast<double>(now_us() - began) * 1e-6;
  return {};
}

void TieredBlocks::remove(std::span<const Hash128> keys) {
  host_->remove(keys);
  if (!off_) below_->remove(keys);
}

}  // namespace octavo
