// The grammar state of an answer's text, and the mask of its next token. A MaskWorker does the work that
// takes too long for a step; meanwhile the sequence is parked.
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
  // vocab_size: vocabulary size of the model. A mask has one bit for each token.
  GuidedText(std::shared_ptr<const grammar::CompiledGrammar> grammar, int vocab_size);

  // Adds an output token. False: the grammar does not allow it. Never waits.
  bool take(TokenId token);
  // Returns the tokens that the grammar forces next, if they are known at once; the caller need not
  // sample them. If this takes longer, the result is empty, and advance() finds them.
  std::vector<TokenId> try_jump();
  // Makes the mask. False: this takes longer than a step may wait.
  bool try_fill();
  bool ready() const { return filled_; }

  // Completes the unfinished work: adds pending tokens, finds forced tokens and makes the mask. May take
  // long. Only this function may run on another thread; no other call may run meanwhile. If memory is not
  // sufficient, mask() reports the error.
  void advance();
  // Forced tokens that advance() found. Also call take() for each of them.
  const std::vector<TokenId>& jump() const { return jump_; }

  // Mask of the next token; requires ready(). Error: no token may follow; the answer must end with this
  // error.
  Result<std::span<const std::int32_t>> mask() const;
  std::size_t mask_words() const { return mask_.size(); }
  grammar::Matcher& matcher() { return matcher_; }

 private:
  Result<> catch_up();

  grammar::Matcher matcher_;
  std::vector<TokenId> untaken_;  // output tokens that the matcher has not read yet
  bool wants_jump_ = false;
  std::vector<TokenId> jump_;
  std::size_t taken_ahead_ = 0;  // number of tokens of jump_ that are not in the output yet
  std::vector<std::int32_t> mask_;
  Result<> outcome_;  // result of filling the mask
  bool filled_ = false;
};

}  // namespace octavo
