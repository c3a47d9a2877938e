// Interface of drafters. A drafter proposes the next tokens, so that one step can check several tokens at
// once (speculative decoding: Leviathan et al., ICML 2023). A wrong draft token costs time, but never changes
// the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/sampling_params.h"

namespace octavo {

// A request for draft tokens for one sequence, and the proposed tokens.
struct Draft {
  std::uint64_t sequence = 0;          // id of the sequence, valid until end()
  std::span<const TokenId> text = {};  // prompt and answer so far, not empty
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;  // sampling parameters of the answer, with its seed
  std::uint64_t seed = 0;
  Hash128 identity = {};  // sequences may share cached blocks only if their identities are equal
                          // (CacheIdentity)
  bool isolated = false;  // whether the request has a cache salt, so that other requests must not use its
                          // text
  int most = 0;           // maximum number of draft tokens

  std::vector<TokenId> tokens = {};  // proposed tokens, at most `most`; may be empty
};

// The rows of one sequence in a step's forward pass.
struct ComputedText {
  std::uint64_t sequence = 0;
  std::int32_t row = 0;                  // row of the first token
  int first = 0;                         // position of the first token
  std::span<const TokenId> tokens = {};  // tokens of the rows, without rejected draft tokens
  TokenId next = 0;                      // token after `tokens`
  // Cache slots of the tokens, in the first group without a window or, if all groups have one, in the first
  // group.
  std::span<const std::int64_t> slots = {};
  std::span<const std::int32_t> blocks = {};  // blocks of the sequence in that group, from its beginning
  bool wanted = true;  // false: no draft tokens are needed soon, so the drafter may skip the rows
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Reports blocks whose content was loaded from another engine or tier, so that the proposer has not read
  // their tokens. It is called before a step reads the blocks. blocks: those of the group in
  // ComputedText::blocks.
  virtual void forget(std::span<const std::int32_t> /*blocks*/) {}

  // Reads a step; called before propose(). The sequences have the order of the step's rows. Rows and spans
  // are valid during the call. A sequence may have ended with the step. Returns an error if the device failed
  // permanently.
  virtual Result<> read(std::span<const ComputedText>) { return {}; }

  // Sets `tokens` of each draft to the likely next tokens of its `text`. There is one draft for each sequence
  // with a new token; a sequence's text only grows. Returns the time (now_ns) at which each sequence has its
  // first draft token, or 0 if all draft tokens are ready at the same time. Returns an error if the device
  // failed permanently.
  virtual Result<std::int64_t> propose(std::span<Draft> drafts) = 0;

  // Called when a sequence has ended with this text. The sequence may never have been in a propose() call.
  virtual void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) = 0;
};

}  // namespace octavo
