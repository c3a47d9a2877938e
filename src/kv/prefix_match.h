// Finds the longest cached prefix of a sequence. The scheduler calls it when it admits a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/kv_cache.h"

namespace octavo {

struct BlockHistory {
  std::span<const std::int32_t> tokens;
  std::span<const Hash128> keys;
  Hash128 extra;  // see BlockContent::extra
  // extras[i] replaces `extra` for block i. It may have fewer elements than `keys`.
  std::span<const Hash128> extras = {};

  Hash128 extra_of(std::size_t block) const { return block < extras.size() ? extras[block] : extra; }
};

// Result of find_prefix(). It adds no users to blocks, so it is valid only until the pool changes. Reuse
// the object to avoid allocations.
struct PrefixMatch {
  int blocks = 0;
  PrefixId tip = kEmptyPrefix;  // content of the prefix
  int unreferenced = 0;         // number of found blocks that have no users
  int lent = 0;                 // number of found blocks in sliding-window groups that have users
  int state_slot = kNoState;    // slot of the saved state at the end of the prefix, if a state is needed
  int stateless_blocks = 0;     // length in blocks that the prefix would have if no state were needed
  // [group][block]; kNoBlock: no later position attends to the block
  std::vector<std::vector<BlockId>> tables;

  std::vector<PrefixId> chain;  // scratch memory: content up to each block, from a full-attention group
};

// Finds the longest cached prefix of `history`. In a full-attention group, all blocks of the prefix must be
// cached. In a sliding-window group, only the blocks to which the first uncached position attends must be
// cached. With recurrent layers, a state must be saved at the end of the prefix. At least one token remains
// uncached, because the step must compute logits.
//
// If a group has full attention, every token of the prefix is compared, so colliding keys cause no errors.
// Otherwise only tokens in the window are compared, and the 128-bit key identifies the tokens before the
// window.
void find_prefix(const KvCache& cache, const BlockHistory& history, PrefixMatch& match);

}  // namespace octavo
