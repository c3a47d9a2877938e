// Decides by its tokens when a sequence ends. (text/ finds stop strings in the text.)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "request/request.h"

namespace octavo {

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token;  // the entry of stop_token_ids that ended it
  bool operator==(const Finish&) const = default;
};

// Checks in vLLM's order. Before min_tokens, only the end of the context ends a sequence; then an end-of-text
// token (unless ignore_eos), a stop token, the length, a repetition.
class FinishRule {
 public:
  // Maximum number of output tokens: max_tokens, limited by the context that the prompt leaves.
  static int output_tokens_max(const Request& request, int context_tokens);

  // `request` must outlive this.
  FinishRule(const Request& request, int context_tokens);

  // Call it once after each token; `output` holds all output tokens, the new one last. O(1), or
  // O(max_pattern_size) with repetition_detection.
  std::optional<Finish> after(std::span<const TokenId> output);

 private:
  bool repeats(std::span<const TokenId> output);

  const Request& request_;
  std::size_t output_max_;
  std::size_t min_period_;
  // For each period from min_period_: how many of the last tokens equal the token one period before, capped
  // at the number that ends the sequence.
  std::vector<std::size_t> runs_;
};

}  // namespace octavo
