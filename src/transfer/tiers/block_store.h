// Interface of the storage of a KV tier: host memory, files, or a server. TierConnector calls the functions
// of the second group on separate threads, because they may wait. It calls the first group on the engine's
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "kv/events.h"
#include "request/engine_stats.h"

namespace octavo {

// FillBlock writes a block's contents to the span. TakeBlock reads them from the span. The span has
// BlockFormat::bytes bytes.
using FillBlock = std::function<void(std::span<std::byte>)>;
using TakeBlock = std::function<void(std::span<const std::byte>)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // --- First group: functions that do not wait; any thread ---

  // Returns for each key whether the block is known to be stored.
  virtual std::vector<bool> contains(std::span<const Hash128> keys) const = 0;
  bool contains(Hash128 key) const { return contains(std::span(&key, 1))[0]; }
  // Returns true if other engines also write and remove blocks. The caller must then call look_up() before
  // contains().
  virtual bool must_look_up() const { return false; }
  // Returns false while the store cannot be reached.
  virtual bool reachable() const { return true; }
  virtual std::size_t most() const = 0;
  // Forgets all blocks: contains() then returns false for them. Files and values on a server stay.
  virtual void forget_all() = 0;

  // Returns the tier of this store that is in the given medium, or null if the store has none or other
  // engines also use it.
  virtual BlockStore* own(KvMedium) { return nullptr; }
  // count(), evicted() and take_removed() are implemented only by stores that own() returns.
  virtual std::int64_t count() const { return 0; }
  virtual std::int64_t evicted() const { return 0; }
  // Returns the keys of blocks that the store evicted since the last call.
  virtual std::vector<Hash128> take_removed() { return {}; }
  // Only a store of two tiers implements these. moved(): metrics of the copies between the tiers.
  // take_written_below(): keys of blocks that were copied to the lower tier since the last call.
  virtual KvTierStats moved() const { return {}; }
  virtual std::vector<Hash128> take_written_below() { return {}; }

  // --- Second group: functions that may wait; any thread ---

  // Both ask the storage which blocks it has, and update contains(). look_up() stops at the first missing
  // key; look_up_each() looks up all keys.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // Marks the blocks of one prompt as used. The prompt's last blocks will be evicted first.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Calls `take` with the block's contents. Errors: not_found if the block has been removed, unavailable
  // after a temporary failure, io after a permanent failure. If the stored bytes are not this block, read()
  // removes them and returns corrupt or invalid_argument.
  virtual Result<> read(Hash128 key, const TakeBlock& take) = 0;
  // Calls `fill`, which must write the complete contents. Returns unavailable or io, as read() does.
  virtual Result<> write(Hash128 key, const FillBlock& fill) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
