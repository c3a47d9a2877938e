// Finds the longest cached prefix of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/kv_cache.h"

namespace octavo {

struct BlockHistory {
  std::span<const std::int32_t> tokens;
  std::span<const Hash128> keys;         // chained hash of each full block
  Hash128 extra;                         // see BlockContent
  std::span<const Hash128> extras = {};  // used instead of `extra` for the first blocks; may be shorter than
                                         // keys

  Hash128 extra_of(std::size_t block) const { return block < extras.size() ? extras[block] : extra; }
};

// Result of find_prefix. It holds no references to blocks, so it is valid until the pool changes. Reuse the
// object to avoid allocations.
struct PrefixMatch {
  int blocks = 0;               // length of the prefix in blocks
  PrefixId tip = kEmptyPrefix;  // content of the prefix
  int unreferenced = 0;         // number of found blocks that are free
  int lent = 0;                 // number of found blocks in window groups that other sequences use
  int state_slot = kNoState;    // slot of the state at the end of the prefix, if a state is needed
  int stateless_blocks = 0;     // if prefixes need a state: length that the prefix would have without it
  std::vector<std::vector<BlockId>> tables;  // [group][block]; kNoBlock: the window has passed the block

  std::vector<PrefixId> chain;  // scratch memory: content up to each block, from a full-attention group
};

// Finds the longest cached prefix of `history`. In a full-attention group, all its blocks must be cached; in
// a sliding-window group, only those to which the first uncached position attends. With recurrent layers, a
// state must be saved at the end of the prefix. At least one token remains uncached, because the step needs
// its logits.
//
// With a full-attention group, every token of the prefix is compared, so colliding keys cause no errors.
// Without such a group, only tokens in the window are compared; the 128-bit key identifies the tokens before
// it.
void find_prefix(const KvCache& cache, const BlockHistory& history, PrefixMatch& match);

}  // namespace octavo
