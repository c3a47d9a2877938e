// Where a tier has its blocks: memory of the host, files of a folder, a server on the network. What is known
// of it is said at once; what moves bytes, or has to ask, waits and is called on threads of the tier's own.
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

// The contents of a block, BlockFormat::bytes of them: written by who has them, or read by who wants them.
using FillBlock = std::function<void(std::span<std::byte>)>;
using TakeBlock = std::function<void(std::span<const std::byte>)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // --- Any thread; none of these waits ---

  // Which are there, as far as is known.
  virtual std::vector<bool> contains(std::span<const Hash128> keys) const = 0;
  bool contains(Hash128 key) const { return contains(std::span(&key, 1))[0]; }
  // Whether what is known is only what look_up() has found out: others write and remove, too.
  virtual bool must_look_up() const { return false; }
  // False: it cannot be reached for the moment.
  virtual bool reachable() const { return true; }
  virtual std::size_t most() const = 0;  // blocks that it can hold
  // As if there were none.
  virtual void forget_all() = 0;

  // The store that has its blocks in that medium and is this engine's alone; null: there is none.
  virtual BlockStore* own(KvMedium) { return nullptr; }
  // Of such a store:
  virtual std::int64_t count() const { return 0; }
  virtual std::int64_t evicted() const { return 0; }
  // Those that were there since the last call, and are not any more.
  virtual std::vector<Hash128> take_gone() { return {}; }
  // What has gone from one of its stores to another, and the blocks that came to the farther one since the
  // last call.
  virtual KvTierStats moved() const { return {}; }
  virtual std::vector<Hash128> take_written_below() { return {}; }

  // --- Any thread; may wait ---

  // Up to the first that is not there.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // They are used now, in one go: tails are removed before what they continue.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Calls `take` with a block that is good; what it is given ends with the call. Errors: not_found (gone
  // meanwhile); corrupt, invalid_argument: not the block, it is removed; unavailable: not for the moment; io:
  // never again.
  virtual Result<> read(Hash128 key, const TakeBlock& take) = 0;
  // Has `fill` write all of the contents. Errors: unavailable and io, as above.
  virtual Result<> write(Hash128 key, const FillBlock& fill) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
