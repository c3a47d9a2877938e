// Keeps the first blocks of a prompt in the cache although no sequence uses them: until another engine has
// fetched them, or until the request that will use them starts. With recurrent layers, the hold also keeps
// the state at the end of the blocks.
#pragma once

#include <vector>

#include "kv/sequence_blocks.h"
#include "request/sampling_params.h"

namespace octavo {

struct PrefixHold {
  std::vector<TokenId> tokens;
  Hash128 identity;             // see SequenceSpec::identity
  std::vector<Hash128> extras;  // see SequenceSpec::extras
  std::vector<Hash128> keys;    // keys of the held blocks in the cache of this process
  SequenceBlocks blocks;
  int cached = 0;  // The first `cached` blocks have their content. The other blocks are still empty.
  // Slot of the state at the end of the blocks. The slot has no content yet while a block is empty.
  int state_slot = kNoState;

  bool is_whole() const { return cached == static_cast<int>(keys.size()); }
  BlockHistory history() const { return {tokens, keys, identity, extras}; }
};

}  // namespace octavo
