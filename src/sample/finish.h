// Decides from the tokens of a sequence whether it ends. (text/ finds stop strings in the text.)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "request/request.h"

namespace octavo {

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token;  // the entry of stop_token_ids that ended the sequence
  bool operator==(const Finish&) const = default;
};

// Checks whether a sequence ends, in vLLM's order. Before min_tokens, only the end of the context ends a
// sequence. After min_tokens, it also ends at an end-of-text token (unless ignore_eos), a stop token, the
// maximum length, or a repetition.
class FinishRule {
 public:
  // Returns the maximum number of output tokens: max_tokens, or the context left after the prompt if that is
  // smaller.
  static int output_tokens_max(const Request& request, int context_tokens);

  // `request` must outlive this object.
  FinishRule(const Request& request, int context_tokens);

  // Called once after each token. output: all output tokens, the new token last. Time: O(1), or
  // O(max_pattern_size) with repetition_detection.
  std::optional<Finish> after(std::span<const TokenId> output);

 private:
  bool repeats(std::span<const TokenId> output);

  const Request& request_;
  std::size_t output_max_;
  std::size_t min_period_;
  // For each period from min_period_ on: number of last tokens that equal the token one period before. A
  // number is not counted beyond the value that ends the sequence.
  std::vector<std::size_t> runs_;
};

}  // namespace octavo
