// The start of a prompt that stays in the cache without a sequence: until another engine has fetched it, or
// for a request that waits for it. With recurrent layers, the hold includes the state at its end.
#pragma once

#include <vector>

#include "kv/sequence_blocks.h"
#include "request/sampling_params.h"

namespace octavo {

struct PrefixHold {
  std::vector<TokenId> tokens;  // tokens of the held blocks
  Hash128 identity;             // see SequenceSpec::identity
  std::vector<Hash128> extras;  // see SequenceSpec::extras
  std::vector<Hash128> keys;    // keys of the held blocks in this process's cache
  SequenceBlocks blocks;
  int cached = 0;             // number of blocks, from the first on, that have their content
  int state_slot = kNoState;  // slot of the state at the end; the slot has no content while blocks are
                              // missing

  bool is_whole() const { return cached == static_cast<int>(keys.size()); }
  BlockHistory history() const { return {tokens, keys, identity, extras}; }
};

}  // namespace octavo
