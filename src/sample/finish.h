// When a sequence ends, as far as its tokens tell. (Stop strings are found in the text, by text/.)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "request/request.h"

namespace octavo {

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token;  // the stop_token_ids entry that ended it
  bool operator==(const Finish&) const = default;
};

// In vLLM's order: before min_tokens nothing but the end of the room ends a sequence; then an end-of-text
// token (unless ignore_eos), a stop token, the length, a repetition.
class FinishRule {
 public:
  // The most tokens this request may generate: max_tokens, and what its prompt leaves of the context.
  static int output_tokens_max(const Request& request, int context_tokens);

  // `request` must outlive this.
  FinishRule(const Request& request, int context_tokens);

  // To be asked once after each token; `output` is all that was generated, the new one last. O(1), and
  // O(max_pattern_size) with repetition_detection.
  std::optional<Finish> after(std::span<const TokenId> output);

 private:
  bool repeats(std::span<const TokenId> output);

  const Request& request_;
  std::size_t output_max_;
  std::size_t min_period_;
  // For each period from min_period_: how many of the last tokens equal the one that many before. Never more
  // than it takes.
  std::vector<std::size_t> runs_;
};

}  // namespace octavo
