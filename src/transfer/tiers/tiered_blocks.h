// Combines two KV tiers into one store: host memory, and a disk or shared store below it. Blocks are written
// to host memory, and a separate thread copies them to the tier below. So the engine's cache blocks become
// free after a fast copy to host memory. Blocks that host memory has evicted can still be loaded from the
// tier below, and a disk keeps them across restarts. A block that is read from the tier below is also put
// into host memory. vLLM's TieringOffloadingSpec works in the same way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "transfer/tiers/block_store.h"
#include "transfer/tiers/flush_limit.h"

namespace octavo {

class TieredBlocks final : public BlockStore {
 public:
  // block_bytes: size of a block's contents. wake: called on any thread when take_written_below() has a
  // result.
  TieredBlocks(std::int64_t block_bytes, std::unique_ptr<BlockStore> host, std::unique_ptr<BlockStore> below,
               std::function<void()> wake);
  // Copies the queued blocks to the tier below, for at most FlushLimit::kUs.
  ~TieredBlocks() override;

  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  bool must_look_up() const override { return !off_ && below_->must_look_up(); }
  // The maximum is that of host memory, because all new blocks are written to host memory.
  std::size_t most() const override { return host_->most(); }
  void forget_all() override;
  BlockStore* own(KvMedium medium) override {
    return medium == KvMedium::host ? host_.get() : below_->own(medium);
  }
  KvTierStats moved() const override;
  std::vector<Hash128> take_written_below() override;

  void look_up(std::span<const Hash128> keys) override { below_->look_up(only_below(keys)); }
  void look_up_each(std::span<const Hash128> keys) override { below_->look_up_each(only_below(keys)); }
  void touch(std::span<const Hash128> keys) override;
  // Returns `unavailable` for errors of the tier below. After an io error, that tier is disabled.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override { return host_->write(key, fill); }
  void remove(std::span<const Hash128> keys) override;

 private:
  std::vector<Hash128> only_below(std::span<const Hash128> keys) const;
  std::vector<Hash128> take_waiting();
  void write_below_loop();
  void write_below(std::span<const Hash128> keys);
  void turn_off(const Error& error);

  const std::int64_t block_bytes_;
  const std::unique_ptr<BlockStore> host_, below_;
  const std::function<void()> wake_;
  // whether the tier below is disabled
  std::atomic<bool> off_ = false;
  FlushLimit flush_;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable arrived_;
  // keys of the blocks to copy to the tier below, one entry for each prompt
  std::deque<std::vector<Hash128>> waiting_;
  // all keys in waiting_
  std::unordered_set<Hash128, HashOfHash> to_write_;
  KvTierStats moved_;
  std::vector<Hash128> written_;

  std::thread writer_;
};

}  // namespace octavo
