// Interface of drafters: they propose the next tokens, so that one step can check several at once
// (speculative decoding: Leviathan et al., ICML 2023). A wrong draft token costs time and never changes the
// output.
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
  std::uint64_t sequence = 0;          // name of the sequence until end()
  std::span<const TokenId> text = {};  // prompt and answer so far, not empty
  int prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;  // includes the seed and the sampling of its tokens
  std::uint64_t seed = 0;
  Hash128 identity = {};  // only equal identities share cached blocks (CacheIdentity)
  bool isolated = false;  // the request has a cache salt: its text must not be used for other requests
  int most = 0;           // maximum number of draft tokens

  std::vector<TokenId> tokens = {};  // the draft tokens, at most `most`; may be empty
};

// The rows of a step's forward pass that belong to one sequence.
struct ComputedText {
  std::uint64_t sequence = 0;
  std::int32_t row = 0;                  // row of the first token
  int first = 0;                         // position of the first token
  std::span<const TokenId> tokens = {};  // without rejected draft tokens
  TokenId next = 0;                      // the token after them
  // Slots of the tokens in the first cache group without a window; if all have one, in the first group.
  std::span<const std::int64_t> slots = {};
  std::span<const std::int32_t> blocks = {};  // the sequence's blocks in that group, from its beginning
  bool wanted = true;  // false if no draft tokens will be needed soon, so the rows are unused
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Reads a step, sequences in the order of its rows; called before propose(). Rows and spans are valid
  // during the call. A sequence may have ended with the step. Error: the device failed permanently.
  virtual Result<> read(std::span<const ComputedText>) { return {}; }

  // Replaces the `tokens` of each draft by the likely next tokens of its `text`. There is one draft for each
  // sequence with a new token, and a sequence's text only grows. Returns the time (now_ns) at which each
  // sequence has its first draft token, 0 if all come at once. Error: the device failed permanently.
  virtual Result<std::int64_t> propose(std::span<Draft> drafts) = 0;

  // A sequence has ended with this text. propose() may never have seen it.
  virtual void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) = 0;
};

}  // namespace octavo
