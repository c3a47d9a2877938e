// Sampling parameters of a request: the fields, defaults and rules of vLLM's SamplingParams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo {

using TokenId = std::int32_t;

// Ends an answer that repeats itself: the output ends with at least min_count repeats of a pattern of
// min_pattern_size to max_pattern_size tokens. max_pattern_size 0: disabled.
struct RepetitionDetection {
  int max_pattern_size = 0;
  int min_pattern_size = 0;
  int min_count = 0;
};

// Changes of the logits of tokens that occurred before.
struct Penalties {
  double presence = 0.0;
  double frequency = 0.0;
  double repetition = 1.0;
};

// Tokens that an answer may contain.
struct TokenRules {
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<TokenId> allowed_token_ids;  // empty: all tokens are allowed
  std::vector<std::string> bad_words;
  std::vector<TokenId> begin_suppress_tokens;      // tokens that must not be the first output token
  std::vector<std::vector<TokenId>> bad_word_ids;  // bad_words as token ids; set by the server
};

// Number of most likely tokens to report with logprobs; -1: complete vocabulary.
struct LogprobRequest {
  std::optional<int> output;         // for each output token
  std::optional<int> prompt;         // for each prompt token
  std::vector<TokenId> token_ids{};  // tokens to report instead of the most likely ones
};

struct SamplingParams {
  int n = 1;  // number of answers to one prompt; answer i uses seed + i

  // Shape of the distribution. Temperature 0 is greedy sampling and ignores top_k, top_p and min_p.
  double temperature = 1.0;
  double top_p = 1.0;
  int top_k = 0;  // 0 or -1: disabled
  double min_p = 0.0;
  Penalties penalties{};
  std::optional<std::int64_t> seed;

  TokenRules tokens{};

  std::optional<int> max_tokens = 16;  // maximum number of output tokens; nullopt: up to the maximum context
                                       // length
  int min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  RepetitionDetection repetition_detection;

  LogprobRequest logprobs{};

  // Handling of the prompt and of the output text.
  std::optional<int> truncate_prompt_tokens;  // number of last prompt tokens to keep; -1: the model's maximum
  bool skip_special_tokens = true;
  bool detokenize = true;

  bool greedy() const { return temperature < kGreedyBelow; }
  static constexpr double kGreedyBelow = 1e-5;
};

struct SamplingLimits {
  int vocab_size = 0;
  int max_logprobs = 20;  // -1: no limit
  int prompt_embeds = 0;  // EngineInfo::prompt_embeds
  int max_n = 16384;
  int max_stop_strings = 32;
  int max_stop_string_bytes = 1024;
  int max_bad_words = 1024;
  int max_stop_token_ids = 1024;
  int max_logprob_token_ids = 128;
  int max_repetition_pattern_size = 1024;  // maximum pattern size, which limits the time of each step
};

// Checks each field against its rule and the limits. Replaces some values: a temperature in (0, 0.01) by
// 0.01, top_k -1 by 0, biases outside [-100, 100] by the nearer limit, stop_token_ids by a sorted set, seed
// -1 by no seed. Errors name the field and the limit.
Result<SamplingParams> validated(SamplingParams params, const SamplingLimits& limits);

}  // namespace octavo
