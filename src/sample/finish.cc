#include "sample/finish.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {

int FinishRule::output_tokens_max(const Request& request, int context_tokens) {
  const int room = std::max(context_tokens - static_cast<int>(request.prompt.size()), 0);
  return std::min(request.sampling.max_tokens.value_or(room), room);
}

FinishRule::FinishRule(const Request& request, int context_tokens)
    : request_(request), output_max_(static_cast<std::size_t>(output_tokens_max(request, context_tokens))) {
  const RepetitionDetection& detection = request.sampling.repetition_detection;
  min_period_ = static_cast<std::size_t>(std::max(detection.min_pattern_size, 1));
  if (detection.max_pattern_size > 0)
    runs_.assign(static_cast<std::size_t>(detection.max_pattern_size) - min_period_ + 1, 0);
}

std::optional<Finish> FinishRule::after(std::span<const TokenId> output) {
  CHECK(!output.empty());
  const SamplingParams& params = request_.sampling;
  const TokenId token = output.back();
  const bool repeated = repeats(output);
  const bool may_end = output.size() >= static_cast<std::size_t>(params.min_tokens);

  if (may_end && !params.ignore_eos && std::ranges::binary_search(request_.eos_ids, token))
    return Finish{FinishReason::stop, {}};
  if (may_end && std::ranges::binary_search(params.stop_token_ids, token))
    return Finish{FinishReason::stop, token};
  if (output.size() >= output_max_) return Finish{FinishReason::length, {}};
  if (may_end && repeated) return Finish{FinishReason::repetition, {}};
  return {};
}

// The output ends with min_count repetitions of a pattern of p tokens if each of the last p * (min_count - 1)
// tokens equals the token p positions earlier.
bool FinishRule::repeats(std::span<const TokenId> output) {
  const auto more = static_cast<std::size_t>(request_.sampling.repetition_detection.min_count - 1);
  bool found = false;
  for (std::size_t i = 0; i < runs_.size() && min_period_ + i < output.size(); ++i) {
    const std::size_t period = min_period_ + i;
    const bool equal = output[output.size() - 1 - period] == output.back();
    runs_[i] = equal ? std::min(runs_[i] + 1, period * more) : 0;
    found |= runs_[i] == period * more;
  }
  return found;
}

}  // namespace octavo
