// Connector to KV tiers: host memory, a disk, or a store that several engines share. The connector stores the
// blocks of computed prompts in the background. If a later prompt has the same prefix and the cache has
// evicted it, the connector loads the blocks.
//
// The connector measures how long loads take, separately for host memory and for the tier below. If computing
// is faster, it does not load. After a system error, the disk is not used any more; an invalid block is
// removed. If other engines also write to the tier, a separate thread first looks up each prompt, with a
// short time limit.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "transfer/block_format.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"
#include "transfer/tiers/block_store.h"
#include "transfer/tiers/prompt_look_ups.h"
#include "transfer/tiers/store_writer.h"
#include "transfer/tiers/use_counts.h"

namespace octavo {

class TierConnector final : public KvConnector {
 public:
  // cache_blocks: number of blocks in the engine's cache. Pending writes use at most an eighth of them.
  // Returns the errors of HostBlocks::open, BlockFiles::open, StoreBlocks::open and compressed().
  static Result<std::unique_ptr<KvConnector>> open(const KvTierOptions& options, BlockFormat format,
                                                   int cache_blocks, CacheAccess cache);
  ~TierConnector() override;

  std::optional<int> matched(const KvPrompt& prompt) override;
  bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) override;
  void load(LoadTask task) override;
  std::vector<RequestId> take_stuck(std::int64_t now_us) override;
  void decline(const KvPrompt& prompt) override;
  bool wants(const KvPrompt& prompt) override;
  bool stores_answers() const override { return !options_.prompt_only; }
  std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task, std::int64_t now_us) override;
  std::vector<std::uint64_t> take_stored(std::int64_t now_us) override;
  std::int64_t wake_at_us() const override;
  bool give_way() override;
  std::vector<bool> held(KvMedium medium, std::span<const Hash128> keys) const override;
  std::vector<Hash128> take_removed(KvMedium medium) override;
  std::vector<Hash128> take_written_below() override { return store_->take_written_below(); }
  void add_stats(EngineStats& stats) const override;

 private:
  static constexpr int kReaders = 2;

  struct Load {
    LoadTask task;
    double seconds;  // expected duration
  };
  struct Reader {
    std::thread thread;
    // time in microseconds at which the thread began to read its current piece; 0: the thread is idle
    std::atomic<std::int64_t> since_us = 0;
    // request that the current piece is for; guarded by mutex_
    RequestId id = 0;
    // whether take_stuck() has returned the request; guarded by mutex_
    bool told = false;
  };
  // Pieces that one load read from one tier, and the time for them.
  struct Loaded {
    int pieces = 0;
    double seconds = 0;
  };
  using LoadedFrom = std::array<Loaded, 2>;  // index 0: tier below host memory; index 1: host memory

  TierConnector(const KvTierOptions& options, BlockFormat format, std::unique_ptr<BlockStore> store,
                std::size_t below_stride, int cache_blocks, CacheAccess cache);

  std::size_t wanted(std::span<const Hash128> keys) const;
  int known_prefix(std::span<const Hash128> keys) const;
  void look_up(std::span<const Hash128> keys);
  double seconds_of(std::span<const Hash128> pieces) const;
  bool is_stuck(const Reader& reader, std::int64_t now_us) const;
  void read_loop(Reader& me);
  void read(Reader& me, const LoadTask& task, LoadResult& result, LoadedFrom& from);
  void write(const StoreTask& task);
  void turn_off(const Error& error);

  const KvTierOptions options_;
  const BlockFormat format_;
  const std::unique_ptr<BlockStore> store_;
  const BlockStore* const host_;  // part of store_, or null
  const std::size_t below_stride_;
  const CacheAccess cache_;
  std::atomic<bool> off_ = false;

  // Only the engine's thread uses the members from here on.
  UseCounts uses_;
  int skipped_in_a_row_ = 0;
  // whether all readers hang; then no blocks are loaded
  bool all_stuck_ = false;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable load_arrived_;
  std::deque<Load> loads_;
  // Running mean of the time to load a piece, indices as in LoadedFrom; 0: unknown.
  std::array<double, 2> piece_seconds_{};
  KvTierStats stats_;
  bool stopping_ = false;

  std::array<Reader, kReaders> readers_;
  std::unique_ptr<PromptLookUps> look_ups_;  // null: must_look_up() is false
  std::unique_ptr<StoreWriter> writer_;
};

}  // namespace octavo
