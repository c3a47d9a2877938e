// KV blocks in host memory, with a maximum total size.
//
// All memory is reserved at the start by the engine's allocator. A GPU's memory is pinned, so that copies are
// direct, and it is taken at once. Plain memory is taken at the first write of a block by the writing thread,
// never by the engine's thread. Blocks are contiguous and in the transfer layout, but without header and
// checksum: they never leave the process, so they need no more checks than the cache itself. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "tensor/buffer.h"
#include "transfer/tiers/block_store.h"
#include "transfer/tiers/eviction_order.h"

namespace octavo {

using AllocateHost = std::function<Result<Buffer>(std::size_t bytes)>;

class HostBlocks final : public BlockStore {
 public:
  // block_bytes: size of a block. machine_bytes: memory that this process may have; 0: unknown. Errors: no
  // room for a single block; more than the machine has; a system error.
  static Result<std::unique_ptr<HostBlocks>> open(std::int64_t block_bytes, std::int64_t bytes_max,
                                                  EvictionPolicy policy, std::uint64_t machine_bytes,
                                                  const AllocateHost& allocate);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  void touch(std::span<const Hash128> keys) override;
  // The block that is read stays unchanged, even if it is evicted meanwhile.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;
  void forget_all() override;

  BlockStore* own(KvMedium medium) override { return medium == KvMedium::host ? this : nullptr; }
  std::vector<Hash128> take_gone() override;
  std::size_t most() const override { return places_.size(); }
  std::int64_t count() const override;
  std::int64_t evicted() const override;

 private:
  // Location of a block in memory_.
  struct Place {
    int readers = 0;
    bool gone = false;  // freed when the last reader ends
  };

  HostBlocks(std::int64_t block_bytes, std::size_t most, EvictionPolicy policy, Buffer memory);
  std::span<std::byte> bytes_of(std::size_t place) const;
  std::size_t take_place();
  void free_place(std::size_t place);
  void leave_place(Hash128 key);

  const std::size_t block_bytes_;
  const Buffer memory_;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable freed_;
  std::unique_ptr<EvictionOrder> order_;
  std::unordered_map<Hash128, std::size_t, HashOfHash> place_of_;  // locations of the blocks in order_
  std::vector<Place> places_;
  std::vector<std::size_t> free_;  // free places that were used before
  std::size_t used_ = 0;           // number of places used so far
  std::vector<Hash128> gone_;
  std::int64_t evicted_ = 0;
};

}  // namespace octavo
