// The start of a prompt, kept in the cache without a sequence: for another engine that fetches it, or for a
// request that waits for it. With recurrent layers, also the state at its end.
#pragma once

#include <vector>

#include "kv/sequence_blocks.h"
#include "request/sampling_params.h"

namespace octavo {

struct PrefixHold {
  std::vector<TokenId> tokens;  // of the held blocks
  Hash128 identity;             // like a sequence's
  std::vector<Hash128> extras;  // like a sequence's
  std::vector<Hash128> keys;    // keys of its blocks in this process's cache
  SequenceBlocks blocks;
  int cached = 0;             // leading blocks that have their content
  int state_slot = kNoState;  // state at its end; blank while blocks are missing

  // Whether all blocks have their content.
  bool is_whole() const { return cached == static_cast<int>(keys.size()); }
  BlockHistory history() const { return {tokens, keys, identity, extras}; }
};

}  // namespace octavo
