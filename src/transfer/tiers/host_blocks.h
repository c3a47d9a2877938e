// KV blocks in memory of the host, some of them evicted where they would take more than so many bytes.
//
// All memory is reserved when the tier is made, as whoever makes it has it: a GPU's is pinned, so that copies
// need not stop over, and taken at once; plain memory is taken by the thread that writes a block there first,
// never by the one that schedules. Blocks lie one beside the other, as they travel but without header and
// checksum: what never left this process needs neither more than the cache itself does. Any thread.
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
  // Of block_bytes each. machine_bytes: of memory that this process may have; 0: not known. Errors: no room
  // for a single block; more than the machine has; the system refuses.
  static Result<std::unique_ptr<HostBlocks>> open(std::int64_t block_bytes, std::int64_t bytes_max,
                                                  EvictionPolicy policy, std::uint64_t machine_bytes,
                                                  const AllocateHost& allocate);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  void touch(std::span<const Hash128> keys) override;
  // Whoever reads a block sees it as it was, whatever is evicted meanwhile.
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
  // Of a block, in memory_.
  struct Place {
    int readers = 0;
    bool gone = false;  // free when nobody reads it any more
  };

  HostBlocks(std::int64_t block_bytes, std::size_t most, EvictionPolicy policy, Buffer memory);
  std::span<std::byte> bytes_of(std::size_t place) const;
  std::size_t take_place();
  void free_place(std::size_t place);
  void leave_place(Hash128 key);

  const std::size_t block_bytes_;
  const Buffer memory_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable freed_;
  std::unique_ptr<EvictionOrder> order_;
  std::unordered_map<Hash128, std::size_t, HashOfHash> place_of_;  // of those in order_
  std::vector<Place> places_;
  std::vector<std::size_t> free_;  // that were used before
  std::size_t used_ = 0;           // places that ever were
  std::vector<Hash128> gone_;
  std::int64_t evicted_ = 0;
};

}  // namespace octavo
