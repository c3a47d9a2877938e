// Decides from the output tokens of a sequence whether generation stops. (src/text finds stop strings in
// the text.)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "request/request.h"

namespace octavo {

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token;  // entry of stop_token_ids that matched
  bool operator==(const Finish&) const = default;
};

// Checks the stop conditions in vLLM's order. While the output has fewer than min_tokens tokens, only a full
// context stops generation. After that, an end-of-text token (unless ignore_eos is set), a stop token, the
// maximum length or a repetition stops it.
class FinishRule {
 public:
  // Returns the maximum number of output tokens: max_tokens, or the size of the context minus the prompt if
  // this is less.
  static int output_tokens_max(const Request& request, int context_tokens);

  // `request` must outlive this object.
  FinishRule(const Request& request, int context_tokens);

  // Must be called once after each token. `output` contains all output tokens. Takes O(1), or
  // O(max_pattern_size) if repetition_detection is set.
  std::optional<Finish> after(std::span<const TokenId> output);

 private:
  bool repeats(std::span<const TokenId> output);

  const Request& request_;
  std::size_t output_max_;
  std::size_t min_period_;
  // runs_[i] belongs to the period p = min_period_ + i. It is the number of tokens at the end of the output
  // that equal the token p positions earlier. The count does not exceed the value at which generation stops.
  std::vector<std::size_t> runs_;
};

}  // namespace octavo
