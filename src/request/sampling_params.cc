#include "request/sampling_params.h"

#include <algorithm>
#include <cmath>

#include "request/sampling_fields.h"

namespace octavo {
namespace {

Result<> at_most(std::string_view field, std::size_t count, int limit) {
  if (count <= static_cast<std::size_t>(limit)) return {};
  return invalid(field, "must have at most {} entries, got {}", limit, count);
}

Result<> in_vocabulary(std::string_view field, TokenId id, int vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return invalid(field, "token id {} is out of vocabulary: must be in [0, {})", id, vocab_size);
}

Result<> valid_logprobs(std::string_view field, std::optional<int> count, const SamplingLimits& limits) {
  if (!count) return {};
  if (*count < -1) return invalid(field, "must be at least -1, got {}", *count);
  const int requested = *count == -1 ? limits.vocab_size : *count;
  if (limits.max_logprobs >= 0 && requested > limits.max_logprobs)
    return invalid(field, "must be at most {} (--max-logprobs), got {}", limits.max_logprobs, *count);
  if (requested > limits.vocab_size)
    return invalid(field, "must be at most the size of the vocabulary, {}, got {}", limits.vocab_size,
                   requested);
  return {};
}

Result<> valid_tokens(const TokenRules& rules, const SamplingLimits& limits) {
  for (const auto& [id, bias] : rules.logit_bias) {
    TRY_VOID(in_vocabulary("logit_bias", id, limits.vocab_size));
    if (std::isnan(bias)) return invalid("logit_bias", "the bias of token {} is not a number", id);
  }
  for (const TokenId id : rules.allowed_token_ids)
    TRY_VOID(in_vocabulary("allowed_token_ids", id, limits.vocab_size));
  TRY_VOID(at_most("bad_words", rules.bad_words.size(), limits.max_bad_words));
  for (const std::string& word : rules.bad_words)
    if (word.empty()) return invalid("bad_words", "bad words must not be empty");
  return {};
}

Result<> valid_ends(const SamplingParams& p, const SamplingLimits& limits) {
  if (p.max_tokens && *p.max_tokens < 1)
    return invalid("max_tokens", "must be at least 1, got {}", *p.max_tokens);
  if (p.max_tokens && p.min_tokens > *p.max_tokens)
    return invalid("min_tokens", "must be <= max_tokens = {}, got {}", *p.max_tokens, p.min_tokens);
  TRY_VOID(at_most("stop", p.stop.size(), limits.max_stop_strings));
  for (const std::string& text : p.stop) {
    if (text.empty()) return invalid("stop", "stop strings must not be empty");
    if (text.size() > static_cast<std::size_t>(limits.max_stop_string_bytes))
      return invalid("stop", "stop strings may have at most {} bytes, got {}", limits.max_stop_string_bytes,
                     text.size());
  }
  if (!p.stop.empty() && !p.detokenize) return invalid("stop", "stop strings need detokenize = true");
  TRY_VOID(at_most("stop_token_ids", p.stop_token_ids.size(), limits.max_stop_token_ids));
  for (const TokenId id : p.stop_token_ids) TRY_VOID(in_vocabulary("stop_token_ids", id, limits.vocab_size));
  const RepetitionDetection& r = p.repetition_detection;
  if (r.max_pattern_size < 0 || r.min_pattern_size < 0 || r.min_pattern_size > r.max_pattern_size)
    return invalid("repetition_detection",
                   "must have 0 <= min_pattern_size <= max_pattern_size, got {} and {}", r.min_pattern_size,
                   r.max_pattern_size);
  if (r.max_pattern_size > limits.max_repetition_pattern_size)
    return invalid("repetition_detection", "max_pattern_size must be <= {}, got {}",
                   limits.max_repetition_pattern_size, r.max_pattern_size);
  if (r.max_pattern_size > 0 && r.min_count < 2)
    return invalid("repetition_detection", "min_count must be >= 2, got {}", r.min_count);
  return {};
}

Result<> valid_reports(const SamplingParams& p, const SamplingLimits& limits) {
  TRY_VOID(valid_logprobs("logprobs", p.logprobs.output, limits));
  TRY_VOID(valid_logprobs("prompt_logprobs", p.logprobs.prompt, limits));
  TRY_VOID(at_most("logprob_token_ids", p.logprobs.token_ids.size(), limits.max_logprob_token_ids));
  for (const TokenId id : p.logprobs.token_ids)
    TRY_VOID(in_vocabulary("logprob_token_ids", id, limits.vocab_size));
  if (p.truncate_prompt_tokens == 0)
    return invalid("truncate_prompt_tokens", "must be -1 or at least 1, got 0");
  return {};
}

}  // namespace

Result<SamplingParams> validated(SamplingParams p, const SamplingLimits& limits) {
  TRY_VOID(check_ranges(p));
  if (p.n > limits.max_n) return invalid("n", "must be at most {}, got {}", limits.max_n, p.n);
  TRY_VOID(valid_tokens(p.tokens, limits));
  TRY_VOID(valid_ends(p, limits));
  TRY_VOID(valid_reports(p, limits));
  if (p.n > 1 && p.greedy()) return invalid("n", "must be 1 when temperature is 0, got {}", p.n);

  if (!p.greedy()) p.temperature = std::max(p.temperature, 0.01);
  if (p.greedy()) p.top_p = 1, p.top_k = 0, p.min_p = 0;
  if (p.top_k == -1 || p.top_k > limits.vocab_size) p.top_k = 0;
  if (p.seed == -1) p.seed.reset();
  for (auto& [id, bias] : p.tokens.logit_bias) bias = std::clamp(bias, -100.0f, 100.0f);
  std::ranges::sort(p.stop_token_ids);
  p.stop_token_ids.erase(std::ranges::unique(p.stop_token_ids).begin(), p.stop_token_ids.end());
  return p;
}

}  // namespace octavo
