// The beginning of a prompt, kept in the cache while nobody computes with it: for another engine that will
// fetch it, or for a request that waits for it. With recurrent layers, the state at its end, too.
#pragma once

#include <vector>

#include "kv/sequence_blocks.h"
#include "request/sampling_params.h"

namespace octavo {

struct PrefixHold {
  std::vector<TokenId> tokens;  // of the blocks kept
  Hash128 identity;             // as a sequence's
  std::vector<Hash128> extras;  // as a sequence's
  std::vector<Hash128> keys;    // of its blocks, as the cache of this process knows them
  SequenceBlocks blocks;
  int cached = 0;             // blocks at the front whose content is there
  int state_slot = kNoState;  // at its end; blank while blocks are

  // Whether all of it is there.
  bool is_whole() const { return cached == static_cast<int>(keys.size()); }
  BlockHistory history() const { return {tokens, keys, identity, extras}; }
};

}  // namespace octavo
