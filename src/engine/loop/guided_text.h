// An answer's text as its grammar sees it, and the mask of what may follow. What takes long is not done in a
// step: it is left to a MaskWorker, and the sequence is parked until it is done.
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
  // vocab_size: of the model; masks have a bit for each of its tokens.
  GuidedText(std::shared_ptr<const grammar::CompiledGrammar> grammar, int vocab_size);

  // The answer has said this token. False: the grammar does not allow it. Never waits.
  bool take(TokenId token);
  // The tokens that must come next, as far as that is known at once: to be said without being sampled.
  // Otherwise advance() finds them.
  std::vector<TokenId> try_jump();
  // Makes the mask. False: that takes longer than a step may wait.
  bool try_fill();
  bool ready() const { return filled_; }

  // What the tries have left undone, however long it takes: takes what was said, finds what must follow,
  // makes the mask. The only call that may come from another thread, alone. Where memory runs out, that is
  // what mask() says.
  void advance();
  // What advance() has found to come next. take() is to hear of each of them, too.
  const std::vector<TokenId>& jump() const { return jump_; }

  // Once ready(): of the place where the text stands; an error: nothing may follow, and the answer ends with
  // it.
  Result<std::span<const std::int32_t>> mask() const;
  std::size_t mask_words() const { return mask_.size(); }
  grammar::Matcher& matcher() { return matcher_; }

 private:
  Result<> catch_up();

  grammar::Matcher matcher_;
  std::vector<TokenId> untaken_;  // said, and not shown to the matcher yet
  bool wants_jump_ = false;
  std::vector<TokenId> jump_;
  std::size_t taken_ahead_ = 0;  // of jump_: not said yet
  std::vector<std::int32_t> mask_;
  Result<> outcome_;  // of filling it
  bool filled_ = false;
};

}  // namespace octavo
