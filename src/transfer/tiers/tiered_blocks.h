// Two tiers as one store: host memory, and below it a disk or a store that engines share.
//
// What is written goes to host memory, and from there, on a thread of its own, to the tier below: the cache's
// blocks wait for memory alone, nothing is lost when host memory evicts a block, and a restart finds what is
// on the disk. A block that is evicted before its turn does not get there. What only the tier below has is
// put into host memory again when it is read. So do the tiers of vLLM's TieringOffloadingSpec.
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

namespace octavo {

class TieredBlocks final : public BlockStore {
 public:
  // block_bytes: of the contents of one. wake: any thread; take_written_below() has something.
  TieredBlocks(std::int64_t block_bytes, std::unique_ptr<BlockStore> host, std::unique_ptr<BlockStore> below,
               std::function<void()> wake);
  ~TieredBlocks() override;

  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  bool must_look_up() const override { return !off_ && below_->must_look_up(); }
  std::size_t most() const override { return host_->most(); }  // everything goes through it
  void forget_all() override;
  BlockStore* own(KvMedium medium) override {
    return medium == KvMedium::host ? host_.get() : below_->own(medium);
  }
  KvTierStats moved() const override;
  std::vector<Hash128> take_written_below() override;

  void look_up(std::span<const Hash128> keys) override { below_->look_up(only_below(keys)); }
  void look_up_each(std::span<const Hash128> keys) override { below_->look_up_each(only_below(keys)); }
  void touch(std::span<const Hash128> keys) override;
  // Errors of the tier below are `unavailable`, and those that would be of `io` turn it off.
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
  std::atomic<bool> off_ = false;  // the tier below
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable came_;
  std::deque<std::vector<Hash128>> waiting_;  // of prompts: what the tier below lacks is written there
  std::unordered_set<Hash128, HashOfHash> to_write_;  // of waiting_
  KvTierStats moved_;
  std::vector<Hash128> written_;

  std::thread writer_;
};

}  // namespace octavo
