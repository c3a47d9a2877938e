// Interface of drafters. A drafter proposes the next tokens, so that one step can check several tokens
// at once (speculative decoding: Leviathan et al., ICML 2023). A wrong draft token costs time, but never
// changes the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/sampling_params.h"

namespace octavo {

// A request for the next tokens of one sequence, and the proposal.
struct Draft {
  std::uint64_t sequence = 0;          // id of the sequence, valid until end()
  std::span<const TokenId> text = {};  // prompt and answer so far, not empty
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;  // sampling parameters of the answer, with its seed
  std::uint64_t seed = 0;
  Hash128 identity = {};  // sequences share cached blocks only if this is equal (CacheIdentity)
  bool isolated = false;  // true: the request has a cache salt, so other requests must not use its text
  int most = 0;           // maximum number of draft tokens

  std::vector<TokenId> tokens = {};  // the draft tokens, at most `most`; may be empty
};

// The rows of one sequence in a step's forward pass.
struct ComputedText {
  std::uint64_t sequence = 0;
  std::int32_t row = 0;                  // row of the first token
  int first = 0;                         // position of the first token
  std::span<const TokenId> tokens = {};  // tokens of the rows, without rejected draft tokens
  TokenId next = 0;                      // the token after them
  // Cache slots of the tokens in the first group without a window; if all groups have a window, in the
  // first group.
  std::span<const std::int64_t> slots = {};
  std::span<const std::int32_t> blocks = {};  // the sequence's blocks in that group, from its beginning
  bool wanted = true;  // false: no draft tokens are needed soon, so the rows may be skipped
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Call before a step reads cache blocks whose content was loaded from elsewhere: the proposer has not
  // read their tokens. blocks: of the group in ComputedText::blocks.
  virtual void forget(std::span<const std::int32_t> /*blocks*/) {}

  // Reads a step before propose(). The sequences have the order of the step's rows. Rows and spans are
  // valid during the call. A sequence may have ended with the step. Error: the device failed permanently.
  virtual Result<> read(std::span<const ComputedText>) { return {}; }

  // Sets the `tokens` of each draft to the likely next tokens of its `text`. There is one draft for each
  // sequence with a new token; a sequence's text only grows. Returns the time (now_ns) at which each
  // sequence has its first draft token, or 0 if all draft tokens are ready at the same time. Error: the
  // device failed permanently.
  virtual Result<std::int64_t> propose(std::span<Draft> drafts) = 0;

  // Call when a sequence has ended with this text. The sequence may never have been in a propose() call.
  virtual void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) = 0;
};

}  // namespace octavo
