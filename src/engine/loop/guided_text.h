// The grammar state of an answer, and the mask of its next token. Work that takes too long for a step runs
// on the MaskWorker, while the sequence is parked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "grammar/matcher.h"
#include "request/sampling_params.h"

namespace octavo {

class GuidedText {
 public:
  // `vocab_size` is that of the model. A mask has one bit per token.
  GuidedText(std::shared_ptr<const grammar::CompiledGrammar> grammar, int vocab_size);

  // Adds an output token without waiting. Returns false if the grammar forbids the token.
  bool take(TokenId token);
  // Returns the tokens that the grammar forces next, so that they need not be sampled. Returns an empty
  // list if finding them takes too long for a step; advance() then finds them.
  std::vector<TokenId> try_jump();
  // Fills the mask. Returns false if that takes too long for a step.
  bool try_fill();
  bool ready() const { return filled_; }

  // Completes the pending work: adds tokens, finds forced tokens and fills the mask. It may take long, so
  // it may run on another thread. No other function may be called at the same time. If there is not enough
  // memory, mask() returns the error.
  void advance();
  // Returns the forced tokens that advance() found. The caller must also call take() for each of them.
  const std::vector<TokenId>& jump() const { return jump_; }

  // Returns the mask of the next token. Requires ready(). Returns an error if no token may follow; the
  // answer must then end with this error.
  Result<std::span<const std::int32_t>> mask() const;
  std::size_t mask_words() const { return mask_.size(); }
  grammar::Matcher& matcher() { return matcher_; }

 private:
  Result<> catch_up();

  grammar::Matcher matcher_;
  std::vector<TokenId> untaken_;  // output tokens that the matcher has not read
  bool wants_jump_ = false;
  std::vector<TokenId> jump_;
  std::size_t taken_ahead_ = 0;  // number of tokens of jump_ that are not in the output yet
  std::vector<std::int32_t> mask_;
  Result<> outcome_;
  bool filled_ = false;
};

}  // namespace octavo
