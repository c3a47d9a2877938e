#include "transfer/tiers/tier_connector.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "base/priority.h"
#include "transfer/tiers/block_files.h"
#include "transfer/tiers/compressed_blocks.h"
#include "transfer/tiers/host_blocks.h"
#include "transfer/tiers/store_blocks.h"
#include "transfer/tiers/tiered_blocks.h"

namespace octavo {
namespace {

constexpr double kNewest = 0.2;  // weight of a new measurement in the running mean
// After this number of consecutive prompts that were not loaded because loading seemed slower, one prompt is
// loaded to measure again.
constexpr int kProbeEvery = 32;
// A load that takes longer than this time in microseconds is stopped, and the engine computes the prompt.
constexpr std::int64_t kLoadUs = 20'000'000;

Result<std::unique_ptr<BlockStore>> open_store(const KvTierOptions& options, const BlockFormat& format) {
  if (is_store_url(options.path_or_url))
    return StoreBlocks::open(options.path_or_url, options.keys, format, options.store_silence_ms);
  TRY(std::unique_ptr<BlockFiles> files,
      BlockFiles::open(options.path_or_url, format, options.bytes, options.eviction, options.use_odirect));
  log_info("KV blocks on disk: {} found in {}", files->count(), options.path_or_url);
  return files;
}

// Opens the tier below host memory. `format` is the cache's format, `below` the format in the tier.
Result<std::unique_ptr<BlockStore>> open_below(const KvTierOptions& options, const BlockFormat& format,
                                               const BlockFormat& below) {
  TRY(auto opened, open_store(options, below));
  if (options.compression == BlockCompression::none) return opened;
  log_info(
      "KV blocks on disk or in the store are compressed as {}, to {} instead of {} bytes; answers may change",
      below.dtype, below.bytes, format.bytes);
  return std::make_unique<CompressedBlocks>(format, options.compression, std::move(opened));
}

// Fills in the metrics of a tier. own: null if other engines also write to the tier.
void describe(const BlockStore* own, std::int64_t bytes_max, std::int64_t block_bytes, KvTierStats& tier) {
  tier.enabled = true;
  tier.block_bytes = block_bytes;
  if (own == nullptr) return;
  tier.blocks = own->count();
  tier.bytes_max = bytes_max;
  tier.evicted_blocks = own->evicted();
}

}  // namespace

Result<std::unique_ptr<KvConnector>> TierConnector::open(const KvTierOptions& options, BlockFormat format,
                                                         int cache_blocks, CacheAccess cache) {
  std::unique_ptr<BlockStore> store;
  TRY(const BlockFormat below_format, compressed(format, options.compression));
  if (options.host_bytes > 0) {
    TRY(store, HostBlocks::open(format.bytes, options.host_bytes, options.eviction, host_memory().all(),
                                cache.allocate));
  }
  if (!options.path_or_url.empty()) {
    TRY(auto below, open_below(options, format, below_format));
    if (store) {
      store = std::make_unique<TieredBlocks>(format.bytes, std::move(store), std::move(below), cache.wake);
    } else {
      store = std::move(below);
    }
  }
  return std::unique_ptr<KvConnector>(new TierConnector(
      options, std::move(format), std::move(store), below_format.stride(), cache_blocks, std::move(cache)));
}

TierConnector::TierConnector(const KvTierOptions& options, BlockFormat format,
                             std::unique_ptr<BlockStore> store, std::size_t below_stride, int cache_blocks,
                             CacheAccess cache)
    : options_(options),
      format_(std::move(format)),
      store_(std::move(store)),
      host_(store_->own(KvMedium::host)),
      below_stride_(below_stride),
      cache_(std::move(cache)),
      uses_(static_cast<std::size_t>(options.max_tracker_size)) {
  for (Reader& reader : readers_) reader.thread = std::thread([this, &reader] { read_loop(reader); });
  writer_ = std::make_unique<StoreWriter>(
      static_cast<std::size_t>(std::max(cache_blocks / 8, 1)), [this](const StoreTask& task) { write(task); },
      cache_.wake);
  if (store_->must_look_up())
    look_ups_ = std::make_unique<PromptLookUps>([this](std::span<const Hash128> keys) { look_up(keys); },
                                                cache_.wake);
}

TierConnector::~TierConnector() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  load_arrived_.notify_all();
  for (Reader& reader : readers_) reader.thread.join();
}

std::optional<int> TierConnector::matched(const KvPrompt& prompt) {
  if (off_ || all_stuck_ || !store_->reachable()) return 0;
  if (prompt.cached >= std::ssize(prompt.keys) && store_->must_look_up()) return 0;
  if (const int known = known_prefix(prompt.keys);
      known == std::ssize(prompt.keys) || !store_->must_look_up())
    return known;
  if (!look_ups_->done(prompt)) return std::nullopt;
  return known_prefix(prompt.keys);
}

int TierConnector::known_prefix(std::span<const Hash128> keys) const {
  return longest_prefix(format_, keys,
                        [&](std::span<const Hash128> names) { return store_->contains(names); });
}

void TierConnector::decline(const KvPrompt& prompt) {
  if (look_ups_) look_ups_->forget(prompt.id);
}

// Cache groups without a window need all blocks of a prefix, so the lookup stops at the first missing one.
// Windows and states need only the end of a prefix, so every key is looked up.
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
  std::int64_t first = look_ups_ ? look_ups_->wake_at_us() : std::numeric_limits<std::int64_t>::max();
  const std::lock_guard lock(mutex_);
  for (const Reader& reader : readers_)
    if (const std::int64_t since = reader.since_us; since != 0 && !reader.told)
      first = std::min(first, since + options_.stuck_us + 1);
  // A read that a reader starts now would hang from this time on.
  if (!loads_.empty()) first = std::min(first, now_us() + options_.stuck_us);
  return first;
}

bool TierConnector::is_stuck(const Reader& reader, std::int64_t now_us) const {
  const std::int64_t since = reader.since_us;
  return since != 0 && now_us - since > options_.stuck_us;
}

// If all readers hang, none of them will take the queued loads. So the requests of the queued loads are
// returned, too.
std::vector<RequestId> TierConnector::take_stuck(std::int64_t now_us) {
  std::vector<RequestId> stuck;
  std::deque<Load> waiting;
  {
    const std::lock_guard lock(mutex_);
    all_stuck_ = true;
    for (Reader& reader : readers_) {
      const bool is = is_stuck(reader, now_us);
      all_stuck_ = all_stuck_ && is;
      if (is && !std::exchange(reader.told, true)) stuck.push_back(reader.id);
    }
    if (all_stuck_) waiting.swap(loads_);
  }
  for (const Load& load : waiting)
    cache_.loaded(
        {.id = load.task.id, .failure = KvTransferFailure::lost, .message = "the tier does not answer"});
  return stuck;
}

double TierConnector::seconds_of(std::span<const Hash128> pieces) const {
  const std::vector<bool> near =
      host_ != nullptr ? host_->contains(pieces) : std::vector<bool>(pieces.size());
  double seconds = 0;
  for (const bool is_near : near) seconds += piece_seconds_[is_near];
  return seconds;
}

bool TierConnector::worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) {
  const std::lock_guard lock(mutex_);
  double before = 0;
  for (const Load& load : loads_) before += load.seconds;
  const double load = before / kReaders + seconds_of(pieces);
  const double compute = blocks * format_.block_size * compute_seconds;
  const bool worth = options_.load_always || load <= compute || compute == 0;
  skipped_in_a_row_ = worth ? 0 : (skipped_in_a_row_ + 1) % kProbeEvery;
  if (worth || skipped_in_a_row_ == 0) return true;
  ++stats_.skipped_loads;
  return false;
}

void TierConnector::load(LoadTask task) {
  if (look_ups_) look_ups_->forget(task.id);
  {
    const std::lock_guard lock(mutex_);
    const double seconds = seconds_of(std::span(task.keys).subspan(static_cast<std::size_t>(task.first)));
    loads_.push_back({std::move(task), seconds});
  }
  load_arrived_.notify_one();
}

void TierConnector::read_loop(Reader& me) {
  lower_priority(kMoves);
  std::unique_lock lock(mutex_);
  for (;;) {
    load_arrived_.wait(lock, [&] { return stopping_ || !loads_.empty(); });
    if (stopping_) return;
    const LoadTask task = std::move(loads_.front().task);
    loads_.pop_front();
    me.id = task.id;
    me.told = false;
    me.since_us = now_us();
    lock.unlock();
    LoadResult result{.id = task.id};
    LoadedFrom from;
    const std::int64_t began = now_us();
    read(me, task, result, from);
    me.since_us = 0;
    result.seconds = static_cast<double>(now_us() - began) * 1e-6;
    result.from[static_cast<std::size_t>(KvSource::disk)] = from[false].pieces;
    result.from[static_cast<std::size_t>(KvSource::host)] = from[true].pieces;
    lock.lock();
    stats_.loaded_bytes += result.bytes;
    stats_.load_seconds += result.seconds;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].pieces == 0) continue;
      const double seconds = from[i].seconds / from[i].pieces;
      double& mean = piece_seconds_[i];
      mean = mean == 0 ? seconds : mean + kNewest * (seconds - mean);
    }
    lock.unlock();
    const auto stored = static_cast<std::size_t>(task.first + result.loaded);
    cache_.loaded(std::move(result));
    // Updates the order of use only after the result is reported, so that the request does not wait for it.
    store_->touch(std::span(task.keys).first(stored));
    lock.lock();
  }
}

// After an invalid block, it also removes all later blocks of the prompt, because they may be invalid, too.
// The engine then computes the prompt and stores these blocks again.
void TierConnector::read(Reader& me, const LoadTask& task, LoadResult& result, LoadedFrom& from) {
  const std::span keys =
      std::span(task.keys).subspan(static_cast<std::size_t>(task.first), task.blocks.size());
  const std::int64_t give_up_us = now_us() + kLoadUs;
  for (std::size_t i = 0; i < task.blocks.size() && !*task.cancelled && !off_; ++i) {
    const std::int64_t began = now_us();
    if (began > give_up_us) {
      result.failure = KvTransferFailure::lost;
      result.message = "the tier takes too long";
      return;
    }
    me.since_us = began;
    const bool near = host_ != nullptr && host_->contains(keys[i]);
    const Result<> read = store_->read(
        keys[i], [&](std::span<const std::byte> contents) { cache_.write(task.blocks[i], contents); });
    if (!read) {
      const ErrorCode code = read.error().code;
      result.message = read.error().message;
      if (code == ErrorCode::not_found) return;
      result.failure = failure_of(code);
      if (code == ErrorCode::io) return turn_off(read.error());
      return store_->remove(keys.subspan(i));
    }
    ++result.loaded;
    result.bytes += format_.bytes;
    ++from[near].pieces;
    from[near].seconds += static_cast<double>(now_us() - began) * 1e-6;
  }
}

// Returns the number of leading keys up to the last one that should be stored.
std::size_t TierConnector::wanted(std::span<const Hash128> keys) const {
  const auto is_used = [&](const Hash128& key) {
    return options_.store_threshold <= 1 || uses_.of(key) >= options_.store_threshold;
  };
  // If a prompt has more blocks than the store's capacity, its last blocks would evict its first ones.
  std::size_t count = std::min(keys.size(), store_->most());
  const std::vector<bool> stored = store_->contains(keys.first(count));
  while (count > 0 && (stored[count - 1] || !is_used(keys[count - 1]))) --count;
  return count;
}

bool TierConnector::wants(const KvPrompt& prompt) {
  if (off_ || !store_->reachable()) return false;
  const std::vector<KvPiece> pieces = pieces_of(format_, 0, static_cast<int>(prompt.keys.size()));
  const std::vector<Hash128> keys = piece_keys(pieces, prompt.keys);
  if (options_.store_threshold > 1) uses_.count(prompt.id, keys);
  return wanted(keys) > 0;
}

std::optional<KvTransferParams> TierConnector::store(const KvPrompt&, StoreTask task, std::int64_t) {
  if (task.blocks.empty()) return std::nullopt;
  const std::size_t count = wanted(task.keys);
  task.keys.resize(count);
  task.blocks.resize(count);
  const std::int64_t blocks = std::ssize(task.blocks);
  if (!writer_->post(std::move(task))) {  // the queue is full
    const std::lock_guard lock(mutex_);
    stats_.dropped_stores += blocks;
  }
  return std::nullopt;
}

void TierConnector::write(const StoreTask& task) {
  for (std::size_t i = 0; i < task.blocks.size() && !writer_->gives_up() && !off_; ++i) {
    if (store_->contains(task.keys[i])) continue;
    const std::int64_t began = now_us();
    const Result<> written = store_->write(
        task.keys[i], [&](std::span<std::byte> contents) { cache_.read(task.blocks[i], contents); });
    if (!written) return written.error().code == ErrorCode::io ? turn_off(written.error()) : void();
    const std::lock_guard lock(mutex_);
    ++stats_.stored_blocks;
    stats_.stored_bytes += format_.bytes;
    stats_.store_seconds += static_cast<double>(now_us() - began) * 1e-6;
  }
  store_->touch(task.keys);
}

void TierConnector::turn_off(const Error& error) {
  if (off_.exchange(true)) return;
  log_error("turned off the tier of KV blocks: {}", error.message);
  store_->forget_all();
}

std::vector<std::uint64_t> TierConnector::take_stored(std::int64_t) { return writer_->take_stored(); }

bool TierConnector::give_way() { return writer_->give_way(); }

std::vector<bool> TierConnector::held(KvMedium medium, std::span<const Hash128> keys) const {
  const BlockStore* own = store_->own(medium);
  return off_ || own == nullptr ? std::vector<bool>(keys.size()) : own->contains(keys);
}

std::vector<Hash128> TierConnector::take_removed(KvMedium medium) {
  BlockStore* own = store_->own(medium);
  return own == nullptr ? std::vector<Hash128>() : own->take_removed();
}

// Adds metrics of the copies between the cache and the store, and (from moved()) between the tiers.
void TierConnector::add_stats(EngineStats& stats) const {
  const bool has_host = options_.host_bytes > 0, has_below = !options_.path_or_url.empty();
  {
    const std::lock_guard lock(mutex_);
    KvTierStats& nearest = has_host ? stats.kv_host_tier : stats.kv_tier;
    nearest = stats_;
    nearest.off = off_;
  }
  if (has_host && has_below) stats.kv_tier = store_->moved();
  if (has_host) describe(store_->own(KvMedium::host), options_.host_bytes, format_.bytes, stats.kv_host_tier);
  if (has_below)
    describe(store_->own(KvMedium::storage), options_.bytes, static_cast<std::int64_t>(below_stride_),
             stats.kv_tier);
}

}  // namespace octavo
