// Finds the longest cached prefix of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/kv_cache.h"

namespace octavo {

// A sequence's tokens and hashes.
struct BlockHistory {
  std::span<const std::int32_t> tokens;  // all known tokens
  std::span<const Hash128> keys;         // chained hash of each full block
  Hash128 extra;                         // see BlockContent
  std::span<const Hash128> extras = {};  // `extra` of the first blocks, where it differs

  Hash128 extra_of(std::size_t block) const { return block < extras.size() ? extras[block] : extra; }
};

// Result of find_prefix. Holds no references, so it is valid until the pool changes. Reuse one object to
// avoid allocations.
struct PrefixMatch {
  int blocks = 0;               // length of the prefix
  PrefixId tip = kEmptyPrefix;  // content of the prefix
  int unreferenced = 0;         // number of found blocks that are free
  int lent = 0;                 // found blocks of sliding-window groups that are in use by others
  int state_slot = kNoState;    // slot of the state at the prefix's end, if prefixes need one
  int stateless_blocks = 0;     // in that case: length of the prefix if no state were needed
  std::vector<std::vector<BlockId>> tables;  // [group][block]; kNoBlock where the window has passed

  std::vector<PrefixId> chain;  // scratch: content up to each block, from a full-attention group
};

// Finds the longest prefix of `history` that is cached: in a full-attention group all its blocks, in a
// sliding-window group those that the first uncached position attends to; with recurrent layers, also a state
// at its end. Leaves at least one token to compute, since logits come only from computing.
//
// With a full-attention group, every token of the prefix is compared, so colliding keys do no harm. Without
// one, only tokens in the window are compared; the 128-bit key identifies the tokens before it.
void find_prefix(const KvCache& cache, const BlockHistory& history, PrefixMatch& match);

}  // namespace octavo
