#include "transfer/tier_connector.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/priority.h"
#include "transfer/block_files.h"
#include "transfer/store_blocks.h"

namespace octavo {
namespace {

constexpr double kNewest = 0.2;  // share of the last load in the running mean
constexpr int kProbeEvery =
    32;  // loads that are not worth it are done that often, to see whether they are now
constexpr std::int64_t kLookUpUs = 1'000'000;  // that a prompt waits until it is known what a store has of it
constexpr std::int64_t kLoadUs = 20'000'000;   // what comes later is computed

}  // namespace

Result<std::unique_ptr<KvConnector>> TierConnector::open(const KvTierOptions& options, BlockFormat format,
                                                         int engine, int cache_blocks, CacheAccess cache) {
  std::unique_ptr<BlockStore> store;
  if (is_store_url(options.place)) {
    TRY(store, StoreBlocks::open(options.place, options.keys, format));
  } else {
    TRY(store, BlockFiles::open(options.place, format, options.bytes, engine, options.eviction));
    log_info("KV blocks on disk: {} found in {}", store->count(), options.place);
  }
  return std::unique_ptr<KvConnector>(
      new TierConnector(options, std::move(format), std::move(store), cache_blocks, std::move(cache)));
}

TierConnector::TierConnector(const KvTierOptions& options, BlockFormat format,
                             std::unique_ptr<BlockStore> store, int cache_blocks, CacheAccess cache)
    : options_(options),
      format_(std::move(format)),
      store_(std::move(store)),
      blocks_waiting_max_(static_cast<std::size_t>(std::max(cache_blocks / 8, 1))),
      cache_(std::move(cache)) {
  for (std::thread& reader : readers_) reader = std::thread([this] { read_loop(); });
  writer_ = std::thread([this] { write_loop(); });
  if (store_->must_look_up()) asker_ = std::thread([this] { look_up_loop(); });
}

TierConnector::~TierConnector() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  give_up_store_ = true;
  look_up_came_.notify_all();
  load_came_.notify_all();
  store_came_.notify_all();
  for (std::thread& reader : readers_) reader.join();
  writer_.join();
  if (asker_.joinable()) asker_.join();
}

std::optional<int> TierConnector::matched(const KvPrompt& prompt) {
  if (off_ || !store_->reachable()) return 0;
  if (!store_->must_look_up()) return known_prefix(prompt.keys);
  if (prompt.cached >= std::ssize(prompt.keys)) return 0;
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = look_ups_.try_emplace(prompt.id);
  LookUp& mine = place->second;
  if (is_new) {
    mine.keys.assign(prompt.keys.begin(), prompt.keys.end());
    mine.give_up_us = now_us() + kLookUpUs;
    look_up_came_.notify_one();
  }
  if (!mine.done && now_us() < mine.give_up_us) return std::nullopt;
  mine.done = true;
  return known_prefix(prompt.keys);
}

int TierConnector::known_prefix(std::span<const Hash128> keys) const {
  return longest_prefix(format_, keys, [&](std::span<const Hash128> names) { return store_->contains(names); });
}

void TierConnector::decline(const KvPrompt& prompt) {
  const std::lock_guard lock(mutex_);
  look_ups_.erase(prompt.id);
}

// The oldest first, those that nobody waits for any more not at all.
void TierConnector::look_up_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = look_ups_.end();
    look_up_came_.wait(lock, [&] {
      next = std::ranges::find_if(look_ups_, [](const auto& each) { return !each.second.done; });
      return stopping_ || next != look_ups_.end();
    });
    if (stopping_) return;
    const RequestId id = next->first;
    const std::vector<Hash128> keys = next->second.keys;
    lock.unlock();
    look_up(keys);
    lock.lock();
    if (const auto mine = look_ups_.find(id); mine != look_ups_.end()) mine->second.done = true;
    cache_.wake();
  }
}

// Of cache groups without a window all blocks are needed; of the others, and of states, what is at the end, wherever
// that is.
void TierConnector::look_up(std::span<const Hash128> keys) {
  std::vector<KvPiece> whole, ends;
  for (int block = 0; block < static_cast<int>(keys.size()); ++block) {
    for (int g = 0; g < group_count(format_); ++g)
      (format_.windows[static_cast<std::size_t>(g)] == 0 ? whole : ends).push_back({block, g});
    for (int i = 0; i < format_.state_pieces; ++i) ends.push_back({block, group_count(format_) + i});
  }
  store_->look_up(piece_keys(whole, keys));
  if (!ends.empty()) store_->look_up_each(piece_keys(ends, keys));
}

std::int64_t TierConnector::wake_at_us() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, each] : look_ups_)
    if (!each.done) first = std::min(first, each.give_up_us);
  return first;
}

bool TierConnector::worth_loading(int blocks, int pieces, double compute_seconds) {
  const std::lock_guard lock(mutex_);
  std::size_t before = 0;
  for (const LoadTask& task : loads_) before += task.blocks.size();
  const double load = (static_cast<double>(before) / kReaders + pieces) * piece_seconds_;
  const double compute = blocks * format_.block_size * compute_seconds;
  const bool worth = options_.load_always || load <= compute || compute == 0;
  skipped_in_a_row_ = worth ? 0 : (skipped_in_a_row_ + 1) % kProbeEvery;
  if (worth || skipped_in_a_row_ == 0) return true;
  ++stats_.skipped_loads;
  return false;
}

void TierConnector::load(LoadTask task) {
  {
    const std::lock_guard lock(mutex_);
    look_ups_.erase(task.id);
    loads_.push_back(std::move(task));
  }
  load_came_.notify_one();
}

void TierConnector::read_loop() {
  lower_priority(kMoves);
  std::unique_lock lock(mutex_);
  for (;;) {
    load_came_.wait(lock, [&] { return stopping_ || !loads_.empty(); });
    if (stopping_) return;
    const LoadTask task = std::move(loads_.front());
    loads_.pop_front();
    lock.unlock();
    LoadResult result{.id = task.id};
    const std::int64_t began = now_us();
    read(task, result);
    result.seconds = static_cast<double>(now_us() - began) * 1e-6;
    lock.lock();
    stats_.loaded_bytes += result.bytes;
    stats_.load_seconds += result.seconds;
    if (result.loaded > 0) {
      const double seconds = result.seconds / result.loaded;
      piece_seconds_ = piece_seconds_ == 0 ? seconds : piece_seconds_ + kNewest * (seconds - piece_seconds_);
    }
    lock.unlock();
    const auto there = static_cast<std::size_t>(task.first + result.loaded);
    cache_.loaded(std::move(result));
    store_->touch(std::span(task.keys).first(there));  // which nobody waits for
    lock.lock();
  }
}

// What stands behind a spoilt block goes with it: it may be spoilt, too, and the prompt, which is computed
// now, is stored whole again.
void TierConnector::read(const LoadTask& task, LoadResult& result) {
  const std::span keys =
      std::span(task.keys).subspan(static_cast<std::size_t>(task.first), task.blocks.size());
  std::vector<std::byte> packed(format_.stride());
  const std::int64_t give_up_us = now_us() + kLoadUs;
  for (std::size_t i = 0; i < task.blocks.size() && !*task.cancelled && !off_; ++i) {
    if (now_us() > give_up_us) {
      result.failure = KvTransferFailure::lost;
      result.message = "it takes too long";
      return;
    }
    const Result<> read = store_->read(keys[i], packed);
    if (!read) {
      const ErrorCode code = read.error().code;
      result.message = read.error().message;
      if (code == ErrorCode::not_found) return;
      result.failure = failure_of(code);
      if (code == ErrorCode::io) return turn_off(read.error());
      return store_->remove(keys.subspan(i));
    }
    cache_.write(task.blocks[i], contents(format_, std::span<const std::byte>(packed)));
    ++result.loaded;
    result.bytes += format_.bytes;
  }
}

void TierConnector::count_uses(std::span<const Hash128> keys) {
  if (options_.store_threshold <= 1) return;
  for (const Hash128& key : keys) {
    const auto [place, is_new] = uses_.try_emplace(key);
    ++place->second;
    if (!is_new) continue;
    used_.push_back(key);
    if (used_.size() <= static_cast<std::size_t>(options_.max_tracker_size)) continue;
    uses_.erase(used_.front());
    used_.pop_front();
  }
}

// So many of the first blocks that all that are wanted are among them.
std::size_t TierConnector::wanted(std::span<const Hash128> keys) const {
  const auto is_used = [&](const Hash128& key) {
    if (options_.store_threshold <= 1) return true;
    const auto place = uses_.find(key);
    return place != uses_.end() && place->second >= options_.store_threshold;
  };
  std::size_t count =
      std::min(keys.size(), store_->most());  // a longer one would drive its own beginning out
  const std::vector<bool> there = store_->contains(keys.first(count));
  while (count > 0 && (there[count - 1] || !is_used(keys[count - 1]))) --count;
  return count;
}

bool TierConnector::wants(const KvPrompt& prompt) {
  if (off_ || !store_->reachable()) return false;
  const std::vector<KvPiece> pieces = pieces_of(format_, 0, static_cast<int>(prompt.keys.size()));
  const std::vector<Hash128> keys = piece_keys(pieces, prompt.keys);
  count_uses(keys);
  return wanted(keys) > 0;
}

std::optional<KvTransferParams> TierConnector::store(const KvPrompt&, StoreTask task, std::int64_t) {
  if (task.blocks.empty()) return std::nullopt;
  const std::size_t count = wanted(task.keys);
  task.keys.resize(count);
  task.blocks.resize(count);
  {
    const std::lock_guard lock(mutex_);
    if (blocks_waiting_ != 0 && blocks_waiting_ + task.blocks.size() > blocks_waiting_max_) {
      stats_.dropped_stores += std::ssize(task.blocks);  // the disk is slower than what comes
      stored_.push_back(task.owner);
    } else {
      blocks_waiting_ += task.blocks.size();
      stores_.push_back(std::move(task));
    }
  }
  store_came_.notify_one();
  return std::nullopt;
}

void TierConnector::write_loop() {
  lower_priority(kPrepares);
  std::unique_lock lock(mutex_);
  for (;;) {
    store_came_.wait(lock, [&] { return stopping_ || !stores_.empty(); });
    if (stopping_) return;
    const StoreTask task = std::move(stores_.front());
    stores_.pop_front();
    give_up_store_ = false;
    lock.unlock();
    write(task);
    lock.lock();
    blocks_waiting_ -= task.blocks.size();
    stored_.push_back(task.owner);
    cache_.wake();
  }
}

void TierConnector::write(const StoreTask& task) {
  std::vector<std::byte> packed(format_.stride());
  for (std::size_t i = 0; i < task.blocks.size() && !give_up_store_ && !off_; ++i) {
    if (store_->contains(task.keys[i])) continue;
    const std::int64_t began = now_us();
    cache_.read(task.blocks[i], contents(format_, std::span(packed)));
    seal(format_, task.keys[i], packed);
    if (const Result<> written = store_->write(task.keys[i], packed); !written)
      return written.error().code == ErrorCode::io ? turn_off(written.error()) : void();
    const std::lock_guard lock(mutex_);
    ++stats_.stored_blocks;
    stats_.stored_bytes += format_.bytes;
    stats_.store_seconds += static_cast<double>(now_us() - began) * 1e-6;
  }
  store_->touch(task.keys);
}

void TierConnector::turn_off(const Error& error) {
  if (off_.exchange(true)) return;
  log_error("the tier of KV blocks is off from now on: {}", error.message);
  store_->forget_all();
}

std::vector<std::uint64_t> TierConnector::take_stored(std::int64_t) {
  const std::lock_guard lock(mutex_);
  return std::exchange(stored_, {});
}

bool TierConnector::give_way() {
  const std::lock_guard lock(mutex_);
  give_up_store_ = true;
  if (stores_.empty()) return false;  // the one that is being written ends with its next block
  for (const StoreTask& task : stores_) {
    stored_.push_back(task.owner);
    blocks_waiting_ -= task.blocks.size();
  }
  stores_.clear();
  return true;
}

std::vector<bool> TierConnector::held(std::span<const Hash128> keys) const {
  return off_ || store_->must_look_up() ? std::vector<bool>(keys.size()) : store_->contains(keys);
}

void TierConnector::add_stats(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.kv_tier = stats_;
  stats.kv_tier.enabled = true;
  stats.kv_tier.off = off_;
  stats.kv_tier.blocks = store_->count();
  stats.kv_tier.bytes_max = store_->must_look_up() ? 0 : options_.bytes;
  stats.kv_tier.evicted_blocks = store_->evicted();
  stats.kv_tier.block_bytes = static_cast<std::int64_t>(format_.stride());
}

}  // namespace octavo
