// Interface of a tier's storage: host memory, files of a folder, or a server on the network. Functions on
// known state return at once. Functions that copy bytes or send requests may wait; the tier calls them on its
// own threads.
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

// Contents of a block, BlockFormat::bytes long: FillBlock writes them, TakeBlock reads them.
using FillBlock = std::function<void(std::span<std::byte>)>;
using TakeBlock = std::function<void(std::span<const std::byte>)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // --- Any thread; none of these waits ---

  // For each key, whether the block is known to be stored.
  virtual std::vector<bool> contains(std::span<const Hash128> keys) const = 0;
  bool contains(Hash128 key) const { return contains(std::span(&key, 1))[0]; }
  // True if only look_up() finds stored blocks, because other engines also write and remove them.
  virtual bool must_look_up() const { return false; }
  // False: currently not reachable.
  virtual bool reachable() const { return true; }
  virtual std::size_t most() const = 0;  // maximum number of blocks
  // Treats the store as empty.
  virtual void forget_all() = 0;

  // The store in this medium that only this engine uses, or null.
  virtual BlockStore* own(KvMedium) { return nullptr; }
  // For such a store:
  virtual std::int64_t count() const { return 0; }
  virtual std::int64_t evicted() const { return 0; }
  // Blocks removed since the last call.
  virtual std::vector<Hash128> take_gone() { return {}; }
  // Bytes copied between its stores, and the blocks that arrived in the lower store since the last call.
  virtual KvTierStats moved() const { return {}; }
  virtual std::vector<Hash128> take_written_below() { return {}; }

  // --- Any thread; may wait ---

  // Looks up the keys, up to the first missing one.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // Marks the blocks as used, as one group: the last blocks of a prompt are evicted before the first ones.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Calls `take` with a valid block; its argument is valid during the call. Errors: not_found (removed in the
  // meantime); corrupt, invalid_argument: not the block, it is removed; unavailable: temporary; io:
  // permanent.
  virtual Result<> read(Hash128 key, const TakeBlock& take) = 0;
  // Calls `fill` to write all of the contents. Errors: unavailable and io, as above.
  virtual Result<> write(Hash128 key, const FillBlock& fill) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
