#include "serve/prompt_progress.h"

#include <algorithm>

namespace octavo {

PromptProgress::PromptProgress(const GenerationPlan& plan) {
  for (std::size_t i = 0; i < plan.prompts.size(); ++i) prompts_.push_back({.tokens = plan.prompt_tokens(i)});
}

std::optional<openai::Progress> PromptProgress::take(std::size_t prompt, const Output& output,
                                                     std::int64_t at_us) {
  // the request has failed or was cancelled
  if (output.finished && output.token_ids.empty()) return std::nullopt;
  if (began_us_ == 0) began_us_ = at_us;
  Prompt& news = prompts_[prompt];
  const int computed = output.token_ids.empty() ? output.computed_tokens : news.tokens;
  if (computed <= news.computed)
    // No progress: an output of another answer to the same prompt, or a step after a preemption.
    return std::nullopt;
  news.computed = computed;
  news.cached = std::max(news.cached, output.cached_tokens);
  openai::Progress all{.ms = static_cast<double>(at_us - began_us_) * 1e-3};
  for (const Prompt& each : prompts_) {
    all.total += each.tokens;
    all.cached += each.cached;
    all.computed += std::max(each.computed, 0);
  }
  return all;
}

}  // namespace octavo
