// Who proposes the tokens that come next, so that one step can check several at once (speculative decoding:
// Leviathan et al., ICML 2023). A draft token costs time when it is wrong, and never changes what is
// generated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/sampling_params.h"

namespace octavo {

// What follows one sequence: the question and the answer.
struct Draft {
  std::uint64_t sequence = 0;          // its name until end()
  std::span<const TokenId> text = {};  // prompt and answer so far, not empty
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;  // with seed: how its tokens are drawn
  std::uint64_t seed = 0;
  Hash128 identity = {};  // what it computes may be shared among equal ones only (CacheIdentity)
  bool isolated = false;  // the request has a cache salt: its text must not serve others
  int most = 0;           // draft tokens wanted

  std::vector<TokenId> tokens = {};  // the draft tokens, at most `most`; none is fine
};

// What a step has computed of a sequence: some of the rows that its forward pass has left.
struct ComputedText {
  std::uint64_t sequence = 0;
  std::int32_t row = 0;  // of the first token
  int first = 0;         // its position
  std::span<const TokenId> tokens =
      {};            // those that stay: accepted draft tokens are among them, others are not
  TokenId next = 0;  // what comes behind them
  // Of the tokens in the first cache group without a window; where all have one, in the first.
  std::span<const std::int64_t> slots = {};
  std::span<const std::int32_t> blocks = {};  // of the sequence there, from its beginning
  bool wanted = true;  // draft tokens of it may be asked for soon; reading it serves nothing else
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // What each step has computed, sequences in the order of its rows; before propose() and until this returns,
  // the rows and all spans stay. A sequence may have ended with the step. Error: the device failed, for good.
  virtual Result<> read(std::span<const ComputedText>) { return {}; }

  // Replaces the `tokens` of each draft by what is likely to follow its `text`. One draft for each sequence
  // that has just got a token; a sequence's text only grows. Returns when the first draft token of each was
  // there (now_ns), 0 where all come at once. Error: the device failed, for good.
  virtual Result<std::int64_t> propose(std::span<Draft> drafts) = 0;

  // A sequence has ended with this text. It may be one that propose() has never seen.
  virtual void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) = 0;
};

}  // namespace octavo
