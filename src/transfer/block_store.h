// Where a tier has its blocks: files of a folder, a server on the network. What is known of it is said at
// once; what moves bytes, or has to ask, waits and is called on threads of the tier's own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace octavo {

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
  virtual std::int64_t count() const = 0;
  virtual std::int64_t evicted() const = 0;
  // As if there were none.
  virtual void forget_all() = 0;
  // Those that were there since the last call, and are not any more; of what is this engine's alone.
  virtual std::vector<Hash128> take_gone() { return {}; }

  // --- Any thread; may wait ---

  // Up to the first that is not there.
  virtual void look_up(std::span<const Hash128>) {}
  virtual void look_up_each(std::span<const Hash128>) {}
  // They are used now, in one go: tails are removed before what they continue.
  virtual void touch(std::span<const Hash128> keys) = 0;
  // Reads and verifies a block. Errors: not_found (gone meanwhile); corrupt, invalid_argument: not the block,
  // it is removed; unavailable: not for the moment; io: never again.
  virtual Result<> read(Hash128 key, std::span<std::byte> packed) = 0;
  // Writes a sealed block. Errors: unavailable and io, as above.
  virtual Result<> write(Hash128 key, std::span<const std::byte> packed) = 0;
  virtual void remove(std::span<const Hash128> keys) = 0;
};

}  // namespace octavo
