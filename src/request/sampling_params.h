// Sampling parameters of a request, with the fields, defaults and rules of vLLM's SamplingParams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo {

using TokenId = std::int32_t;

// Ends an answer whose output ends with at least min_count repetitions of a pattern. The pattern has
// min_pattern_size to max_pattern_size tokens. max_pattern_size 0: disabled.
struct RepetitionDetection {
  int max_pattern_size = 0;
  int min_pattern_size = 0;
  int min_count = 0;
};

// Penalties on the logits of tokens that already occurred.
struct Penalties {
  double presence = 0.0;
  double frequency = 0.0;
  double repetition = 1.0;
};

struct TokenRules {
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<TokenId> allowed_token_ids;  // empty: all tokens are allowed
  std::vector<std::string> bad_words;
  std::vector<TokenId> begin_suppress_tokens;      // tokens that must not be the first output token
  std::vector<std::vector<TokenId>> bad_word_ids;  // token ids of bad_words; set by the server
};

// Number of most likely tokens to report at each position; -1: the complete vocabulary.
struct LogprobRequest {
  std::optional<int> output;
  std::optional<int> prompt;
  std::vector<TokenId> token_ids{};  // tokens to report instead of the most likely ones
  // Tokens to report for each prompt position; `prompt` must be nullopt or 0. Row i has the tokens whose
  // logprobs are reported as predictions of prompt token prompt_start + i + 1. All rows have the same length;
  // -1 is padding, with logprob -infinity. Empty: not requested.
  std::vector<std::vector<TokenId>> prompt_token_ids{};
  int prompt_start = 0;

  bool of_prompt() const { return prompt || !prompt_token_ids.empty(); }
};

struct SamplingParams {
  int n = 1;  // number of answers to the prompt; answer i uses seed + i

  // Temperature 0 is greedy sampling, which ignores top_k, top_p and min_p.
  double temperature = 1.0;
  double top_p = 1.0;
  int top_k = 0;  // 0 or -1: disabled
  double min_p = 0.0;
  Penalties penalties{};
  std::optional<std::int64_t> seed;

  TokenRules tokens{};

  // maximum number of output tokens; nullopt: up to the model's context length
  std::optional<int> max_tokens = 16;
  int min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  RepetitionDetection repetition_detection;

  LogprobRequest logprobs{};

  // number of tokens to keep at the end of the prompt; -1: the model's maximum
  std::optional<int> truncate_prompt_tokens;
  bool skip_special_tokens = true;
  bool detokenize = true;

  bool greedy() const { return temperature < kGreedyBelow; }
  static constexpr double kGreedyBelow = 1e-5;
};

struct SamplingLimits {
  int vocab_size = 0;
  int max_logprobs = 20;  // -1: no limit
  int prompt_embeds = 0;  // see EngineInfo::prompt_embeds
  int max_n = 16384;
  int max_stop_strings = 32;
  int max_stop_string_bytes = 1024;
  int max_bad_words = 1024;
  int max_stop_token_ids = 1024;
  int max_logprob_token_ids = 128;
  int max_repetition_pattern_size = 1024;  // limits the time of each step
};

// Checks each field against its rule and the limits. Returns an error with the field and the limit if a
// value is invalid. Adjusts some values: a temperature in (0, 0.01) becomes 0.01, top_k -1 becomes 0,
// biases are clamped to [-100, 100], stop_token_ids become a sorted set, and seed -1 becomes nullopt.
Result<SamplingParams> validated(SamplingParams params, const SamplingLimits& limits);

}  // namespace octavo
