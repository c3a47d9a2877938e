// Guesses that the text goes on as it did before: the last tokens are looked up in the text itself (prompt
// lookup decoding: Saxena, 2023). Costs no model, and pays where answers quote, repeat or edit their prompt.
#pragma once

#include "base/error.h"
#include "speculate/proposer.h"

namespace octavo {

// Names and meanings follow vLLM's speculative configuration.
struct NgramOptions {
  int num_speculative_tokens = 5;  // guesses at a time
  int prompt_lookup_min = 5;       // tokens that must have come before alike
  int prompt_lookup_max = 5;       // tokens looked at
};

// Errors name the field and its limit.
Result<> validate(const NgramOptions& options);

class NgramProposer final : public Proposer {
 public:
  // `options` is valid.
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // What followed the longest match, the latest of equals; beyond the end of the text the guesses repeat.
  // O(text).
  void propose(std::span<const TokenId> text, std::vector<TokenId>& drafts) override;

 private:
  NgramOptions options_;
};

}  // namespace octavo
