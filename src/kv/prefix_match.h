// How much of a sequence's past is already in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/kv_cache.h"

namespace octavo {

// A sequence as the cache knows it.
struct BlockHistory {
  std::span<const std::int32_t> tokens;  // all that are known
  std::span<const Hash128> keys;         // chained hash of each full block
  Hash128 extra;                         // see BlockContent
  std::span<const Hash128> extras = {};  // of the first blocks, where they are not all `extra`

  Hash128 extra_of(std::size_t block) const { return block < extras.size() ? extras[block] : extra; }
};

// Filled by find_prefix. Holds no references: good until the pool is next changed. Reuse one object, so that
// nothing is allocated.
struct PrefixMatch {
  int blocks = 0;                            // length of the prefix
  PrefixId tip = kEmptyPrefix;               // its content
  int unreferenced = 0;                      // of the blocks found: how many are free now
  int lent = 0;                              // of those in sliding-window groups: how many others use now
  int state_slot = kNoState;                 // of the state at the prefix's end, where prefixes need one
  int stateless_blocks = 0;                  // where they do: length of the prefix without that need
  std::vector<std::vector<BlockId>> tables;  // [group][block]; kNoBlock where the window has passed

  std::vector<PrefixId> chain;  // scratch: content up to each block, where a full group tells
};

// The longest prefix of `history` whose blocks are there: in a full-attention group all of them, in a
// sliding-window group those that the first uncached position still sees; and with recurrent layers there is
// a state at its end. At least one token is left over to be computed, since logits come only from computing.
//
// With a full-attention group every token of the prefix is compared, so that colliding keys do no harm.
// Without one, tokens are compared within the window, and what came before it rests on the 128-bit key.
void find_prefix(const KvCache& cache, const BlockHistory& history, PrefixMatch& match);

}  // namespace octavo
