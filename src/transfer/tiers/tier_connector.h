// Tiers of the KV cache, in host memory, on a disk or in a store that engines share: blocks of prompts that
// have been computed are written behind, and loaded when a prompt that begins with them comes again and the
// cache does not have them any more.
//
// What a load takes is measured, from host memory apart, and where computing is faster nothing is loaded. Any
// error of the system's turns a disk off; a block that is not what it should be costs itself alone. Where
// nobody knows what is there without asking (a store), a prompt is looked up first, on a thread of its own,
// and not waited for long.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "transfer/block_format.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"
#include "transfer/tiers/block_store.h"

namespace octavo {

class TierConnector final : public KvConnector {
 public:
  // cache_blocks: of the engine's cache; what waits to be written keeps at most an eighth of them. Errors:
  // see HostBlocks::open, BlockFiles::open, StoreBlocks::open and compressed().
  static Result<std::unique_ptr<KvConnector>> open(const KvTierOptions& options, BlockFormat format,
                                                   int engine, int cache_blocks, CacheAccess cache);
  ~TierConnector() override;

  std::optional<int> matched(const KvPrompt& prompt) override;
  bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) override;
  void load(LoadTask task) override;
  std::vector<RequestId> take_stuck(std::int64_t now_us) override;
  void decline(const KvPrompt& prompt) override;
  bool wants(const KvPrompt& prompt) override;
  std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task, std::int64_t now_us) override;
  std::vector<std::uint64_t> take_stored(std::int64_t now_us) override;
  std::int64_t wake_at_us() const override;
  bool give_way() override;
  std::vector<bool> held(KvMedium medium, std::span<const Hash128> keys) const override;
  std::vector<Hash128> take_gone(KvMedium medium) override;
  std::vector<Hash128> take_written_below() override { return store_->take_written_below(); }
  void add_stats(EngineStats& stats) const override;

 private:
  static constexpr int kReaders = 2;

  struct LookUp {
    std::vector<Hash128> keys;
    std::int64_t give_up_us = 0;
    bool done = false;
  };
  struct Load {
    LoadTask task;
    double seconds;  // that it is expected to take
  };
  struct Reader {
    std::thread thread;
    std::atomic<std::int64_t> since_us = 0;  // that it reads a piece; 0: it does not
    RequestId id = 0;                        // for whom; these two: under mutex_
    bool told = false;                       // take_stuck() has named it
  };
  // Pieces of a load that came from the same place.
  struct Loaded {
    int pieces = 0;
    double seconds = 0;
  };
  using LoadedFrom = std::array<Loaded, 2>;  // [1]: host memory, [0]: below it

  TierConnector(const KvTierOptions& options, BlockFormat format, std::unique_ptr<BlockStore> store,
                std::size_t below_stride, int cache_blocks, CacheAccess cache);

  void count_uses(std::span<const Hash128> keys);
  std::size_t wanted(std::span<const Hash128> keys) const;
  int known_prefix(std::span<const Hash128> keys) const;
  void look_up(std::span<const Hash128> keys);
  void look_up_loop();
  double seconds_of(std::span<const Hash128> pieces) const;
  bool is_stuck(const Reader& reader, std::int64_t now_us) const;
  void read_loop(Reader& me);
  void write_loop();
  void read(Reader& me, const LoadTask& task, LoadResult& result, LoadedFrom& from);
  void write(const StoreTask& task);
  void turn_off(const Error& error);

  const KvTierOptions options_;
  const BlockFormat format_;
  const std::unique_ptr<BlockStore> store_;
  const BlockStore* const host_;    // of store_; null: it has nothing in host memory
  const std::size_t below_stride_;  // bytes of a block below host memory
  const std::size_t blocks_waiting_max_;
  const CacheAccess cache_;
  std::atomic<bool> off_ = false;
  std::atomic<bool> give_up_store_ = false;  // the one that is being written

  // Of the engine's thread: how many prompts had a block; of too many blocks the first ones are forgotten.
  std::unordered_map<Hash128, int, HashOfHash> uses_;
  std::deque<Hash128> used_;
  int skipped_in_a_row_ = 0;
  bool all_stuck_ = false;  // readers: nothing is loaded

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable look_up_came_, load_came_, store_came_;
  std::map<RequestId, LookUp> look_ups_;  // of prompts that wait for theirs, or for room
  std::deque<Load> loads_;
  std::deque<StoreTask> stores_;
  std::size_t blocks_waiting_ = 0;         // of stores_ and of the one that is being written
  std::vector<std::uint64_t> stored_;      // owners
  std::array<double, 2> piece_seconds_{};  // to load one, running means, as LoadedFrom; 0: none has been
  KvTierStats stats_;
  bool stopping_ = false;

  std::array<Reader, kReaders> readers_;
  std::thread asker_;  // where the store must be asked
  std::thread writer_;
};

}  // namespace octavo
