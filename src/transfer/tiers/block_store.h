// Interface of a tier's storage: host memory, files in a folder, or a server on the network. Functions of
// the first group return at once. Functions of the second group copy bytes or send requests and may wait;
// the tier calls them on its own threads.
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

// Both functions get the contents of a block, BlockFormat::bytes long. FillBlock writes them, TakeBlock
// reads them.
using FillBlock = std::function<void(std::span<std::byte>)>;
using TakeBlock = std::function<void(std::span<const std::byte>)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // --- First group: any thread; these never wait ---

  // For each key, true if the block is known to be stored.
  virtual std::vector<bool> contains(std::span<const Hash128> keys) const = 0;
  bool contains(Hash128 key) const { return contains(std::span(&key, 1))[0]; }
  // True if contains() is not enough and look_up() must be called, because other engines also write and
  // remove blocks.
  virtual bool must_look_up() const { return false; }
  // False: the store cannot be reached at the moment.
  virtual bool reachable() const { return true; }
  virtual std::size_t most() const = 0;
  // Treats the store as empty.
  virtual void forget_all() = 0;

  // The store in this medium, if only this engine uses it; otherwise null.
  virtual BlockStore* own(KvMedium) { return nullptr; }
  // For the stores that own() returns:
  virtual std::int64_t count() const { return 0; }
  virtual std::int64_t evicted() const { return 0; }
  // Returns the keys of blocks removed since the last call.
  virtual std::vector<Hash128> take_gone() { return {}; }
  // For two tiers: bytes copied between them, and the keys of blocks copied to the lower one since the last
  // call.
  virtual KvTierStats moved() const { return {}; }
  virtual std::vector<Hash128> take_written_below() { return {}; }

  // --- Second group: any thread; these may wait ---

  // Looks up the keys, up to the first missing one. look_up_each() looks up all keys.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // Marks the blocks as used together: the last blocks of a prompt are evicted before the first ones.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Calls `take` with a valid block; its argument is valid during the call. Errors: not_found, the block
  // was removed meanwhile; corrupt or invalid_argument, the content is not this block, and it is removed;
  // unavailable, temporary; io, permanent.
  virtual Result<> read(Hash128 key, const TakeBlock& take) = 0;
  // Calls `fill`, which must write the whole contents. Errors: unavailable and io, as in read().
  virtual Result<> write(Hash128 key, const FillBlock& fill) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
