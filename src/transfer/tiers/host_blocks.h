// KV tier in host memory, with a limit on the total size.
//
// The engine's allocator reserves the memory at start. For a GPU, the memory is pinned and allocated at once,
// so that the GPU copies directly. For a CPU, the system allocates each page at its first write, on the
// writer thread. A block has only its contents (block_format.h), without a header and a checksum, because it
// never leaves the process. Any thread may call the functions.
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
  // machine_bytes: memory that this process may use; 0: unknown. Returns an error if bytes_max is less than
  // one block or more than machine_bytes, or after a system error.
  static Result<std::unique_ptr<HostBlocks>> open(std::int64_t block_bytes, std::int64_t bytes_max,
                                                  EvictionPolicy policy, std::uint64_t machine_bytes,
                                                  const AllocateHost& allocate);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  void touch(std::span<const Hash128> keys) override;
  // A block that is evicted during the read stays valid until the read ends.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;
  void forget_all() override;

  BlockStore* own(KvMedium medium) override { return medium == KvMedium::host ? this : nullptr; }
  std::vector<Hash128> take_removed() override;
  std::size_t most() const override { return slots_.size(); }
  std::int64_t count() const override;
  std::int64_t evicted() const override;

 private:
  struct Slot {
    int readers = 0;
    // true: the block was removed; the slot becomes free when its last reader ends
    bool removed = false;
  };

  HostBlocks(std::int64_t block_bytes, std::size_t most, EvictionPolicy policy, Buffer memory);
  std::span<std::byte> bytes_of(std::size_t slot) const;
  std::size_t take_slot();
  void free_slot(std::size_t slot);
  void leave_slot(Hash128 key);

  const std::size_t block_bytes_;
  const Buffer memory_;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable freed_;
  std::unique_ptr<EvictionOrder> order_;
  // slots of the stored blocks
  std::unordered_map<Hash128, std::size_t, HashOfHash> slot_of_;
  std::vector<Slot> slots_;
  // free slots that have been used before
  std::vector<std::size_t> free_;
  std::size_t used_ = 0;  // number of slots that have been used; later slots are still unused
  std::vector<Hash128> removed_;
  std::int64_t evicted_ = 0;
};

}  // namespace octavo
