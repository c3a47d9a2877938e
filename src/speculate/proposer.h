// Who guesses the tokens that come next, so that one step can check several at once (speculative decoding:
// Leviathan et al., ICML 2023). A guess costs time when it is wrong, and never changes what is generated.
#pragma once

#include <span>
#include <vector>

#include "request/sampling_params.h"

namespace octavo {

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Replaces `drafts` by guesses of what follows `text` (prompt and answer so far, not empty); none is fine.
  virtual void propose(std::span<const TokenId> text, std::vector<TokenId>& drafts) = 0;
};

}  // namespace octavo
