// Interface of drafters. A drafter proposes the next tokens of a sequence, so that one step of the target
// model can check several tokens (speculative decoding: Leviathan et al., ICML 2023). A wrong draft token
// costs time, but never changes the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/sampling_params.h"

namespace octavo {

// The draft tokens of one sequence, with the inputs from which the drafter computes them.
struct Draft {
  std::uint64_t sequence = 0;          // id of the sequence, valid until Proposer::end()
  std::span<const TokenId> text = {};  // prompt and output so far, not empty
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;  // includes the seed
  std::uint64_t seed = 0;
  // Sequences may share cached blocks only if their identities are equal (CacheIdentity).
  Hash128 identity = {};
  // True if the request has a cache salt. Its text must not be used for draft tokens of other requests.
  bool isolated = false;
  int most = 0;

  std::vector<TokenId> tokens = {};
};

// The rows of one sequence in a step's forward pass.
struct ComputedText {
  std::uint64_t sequence = 0;
  std::int32_t row = 0;
  int first = 0;
  std::span<const TokenId> tokens = {};  // tokens of the rows, without rejected draft tokens
  TokenId next = 0;                      // token after `tokens`
  // Cache slots of the tokens in the first group with full attention or, if all groups have a window, in
  // the first group.
  std::span<const std::int64_t> slots = {};
  std::span<const std::int32_t> blocks = {};  // all blocks of the sequence in the same group
  bool wanted = true;  // false: the sequence needs no draft tokens soon, so the drafter may skip the rows
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Reports blocks whose content was loaded from another engine or tier, so the drafter has not read their
  // tokens. Called before a step reads the blocks. The blocks belong to the same group as
  // ComputedText::blocks.
  virtual void forget(std::span<const std::int32_t> /*blocks*/) {}

  // Reads the tokens of a step; called before propose(). The sequences are in the order of the step's rows,
  // and some may have ended with the step. Rows and spans are valid only during the call. Returns an error
  // if the device failed permanently.
  virtual Result<> read(std::span<const ComputedText>) { return {}; }

  // Sets Draft::tokens of each draft to the most likely next tokens. There is one draft for each sequence
  // with a new token. The text of a sequence only grows. Returns the time (now_ns) at which each sequence
  // had its first draft token, or 0 if all draft tokens are ready at the same time. Returns an error if the
  // device failed permanently.
  virtual Result<std::int64_t> propose(std::span<Draft> drafts) = 0;

  // Called when a sequence has ended, even if it was never passed to propose(). `text` is the prompt and
  // the output.
  virtual void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) = 0;
};

}  // namespace octavo
