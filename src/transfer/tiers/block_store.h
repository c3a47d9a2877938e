// Interface of a tier's storage: host memory, files in a folder, or a server on the network. Functions of the
// first group do not wait. Functions of the second group copy bytes or send requests and may wait; the tier
// calls them on separate threads.
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

// Functions for the contents of a block, BlockFormat::bytes long. FillBlock writes them, TakeBlock reads
// them.
using FillBlock = std::function<void(std::span<std::byte>)>;
using TakeBlock = std::function<void(std::span<const std::byte>)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // --- First group: functions that do not wait; any thread ---

  // Returns for each key whether the block is known to be stored.
  virtual std::vector<bool> contains(std::span<const Hash128> keys) const = 0;
  bool contains(Hash128 key) const { return contains(std::span(&key, 1))[0]; }
  // Returns true if contains() is not sufficient and look_up() must be called, because other engines also
  // write and remove blocks.
  virtual bool must_look_up() const { return false; }
  // Returns false if the store cannot be reached at the moment.
  virtual bool reachable() const { return true; }
  virtual std::size_t most() const = 0;
  // Treats the store as empty.
  virtual void forget_all() = 0;

  // Returns the store in this medium if only this engine uses it; otherwise null.
  virtual BlockStore* own(KvMedium) { return nullptr; }
  // Functions for the stores that own() returns:
  virtual std::int64_t count() const { return 0; }
  virtual std::int64_t evicted() const { return 0; }
  // Returns the keys of blocks that were removed since the last call.
  virtual std::vector<Hash128> take_gone() { return {}; }
  // For two tiers: bytes copied between them, and the keys of blocks that were copied to the lower one since
  // the last call.
  virtual KvTierStats moved() const { return {}; }
  virtual std::vector<Hash128> take_written_below() { return {}; }

  // --- Second group: functions that may wait; any thread ---

  // Looks up the keys, up to the first missing one. look_up_each() looks up all keys.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // Marks the blocks as used together: the last blocks of a prompt are evicted before the first ones.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Calls `take` with a valid block; its argument is valid during the call. Returns not_found if the block
  // was removed in the meantime, corrupt or invalid_argument if the content is not this block (it is then
  // removed), unavailable for temporary failures, or io for permanent failures.
  virtual Result<> read(Hash128 key, const TakeBlock& take) = 0;
  // Calls `fill`, which must write the complete contents. Returns unavailable or io, as in read().
  virtual Result<> write(Hash128 key, const FillBlock& fill) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
