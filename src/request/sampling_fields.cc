#include "request/sampling_fields.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace octavo {
namespace {

using P = SamplingParams;
using Part = SamplingField::Part;

// Limits of the repetition penalty. Other penalties could make a logit infinite.
constexpr double kPenaltyLeast = 1e-6, kPenaltyMost = 1e6;

constexpr SamplingField kFields[] = {
    {.name = "n",
     .member = member_path<&P::n>,
     .part = Part::draws,
     .help = "Number of answers to each prompt",
     .least = 1,
     .flag = "-n,--n"},
    {.name = "temperature",
     .member = member_path<&P::temperature>,
     .part = Part::draws,
     .help = "Randomness of sampling; 0: always take the most likely token",
     .least = 0,
     .most = 2,
     .flag = "--temperature",
     .generation_config = true,
     .messages = true},
    {.name = "top_p",
     .member = member_path<&P::top_p>,
     .part = Part::draws,
     .help = "Sample from the most likely tokens whose probabilities together reach this value",
     .least = 0,
     .most = 1,
     .above_least = true,
     .flag = "--top-p",
     .generation_config = true,
     .messages = true},
    {.name = "top_k",
     .member = member_path<&P::top_k>,
     .part = Part::draws,
     .help = "Sample from this number of most likely tokens; 0 or -1: all tokens",
     .least = -1,
     .flag = "--top-k",
     .generation_config = true,
     .messages = true},
    {.name = "min_p",
     .member = member_path<&P::min_p>,
     .part = Part::draws,
     .help = "Sample only from tokens whose probability is at least this fraction of the highest probability",
     .least = 0,
     .most = 1,
     .flag = "--min-p",
     .generation_config = true,
     .messages = true},
    {.name = "presence_penalty",
     .member = member_path<&P::penalties, &Penalties::presence>,
     .part = Part::draws,
     .help = "Value to subtract from the logits of tokens that the answer already contains",
     .least = -2,
     .most = 2,
     .flag = "--presence-penalty",
     .messages = true},
    {.name = "frequency_penalty",
     .member = member_path<&P::penalties, &Penalties::frequency>,
     .part = Part::draws,
     .help = "Value to subtract from the logit of a token each time that the answer contains it",
     .least = -2,
     .most = 2,
     .flag = "--frequency-penalty",
     .messages = true},
    {.name = "repetition_penalty",
     .member = member_path<&P::penalties, &Penalties::repetition>,
     .part = Part::draws,
     .help = "Factor by which the logits of tokens in the prompt and the answer are reduced; 1: no change",
     .least = kPenaltyLeast,
     .most = kPenaltyMost,
     .flag = "--repetition-penalty",
     .generation_config = true,
     .messages = true},
    {.name = "seed",
     .member = member_path<&P::seed>,
     .part = Part::draws,
     .help = "Seed of sampling; the same seed gives the same answer. -1: no seed",
     .flag = "--sampling-seed",
     .messages = true},
    {.name = "logit_bias",
     .member = member_path<&P::tokens, &TokenRules::logit_bias>,
     .part = Part::tokens,
     .help = "Object that maps token ids to a value to add to their logits, from -100 to 100"},
    {.name = "allowed_token_ids",
     .member = member_path<&P::tokens, &TokenRules::allowed_token_ids>,
     .part = Part::tokens,
     .help = "Token ids that answers may contain; all others are excluded"},
    {.name = "bad_words",
     .member = member_path<&P::tokens, &TokenRules::bad_words>,
     .part = Part::tokens,
     .help = "Words that answers must not contain"},
    {.name = "stop",
     .member = member_path<&P::stop>,
     .part = Part::end,
     .help = "Text that ends an answer, or a list of texts",
     .flag = "--stop"},
    {.name = "stop_token_ids",
     .member = member_path<&P::stop_token_ids>,
     .part = Part::end,
     .help = "Token ids that end an answer"},
    {.name = "min_tokens",
     .member = member_path<&P::min_tokens>,
     .part = Part::end,
     .help = "Minimum number of output tokens",
     .least = 0,
     .flag = "--min-tokens"},
    {.name = "ignore_eos",
     .member = member_path<&P::ignore_eos>,
     .part = Part::end,
     .help = "Continue an answer after end-of-text tokens",
     .flag = "--ignore-eos"},
    {.name = "repetition_detection",
     .member = member_path<&P::repetition_detection>,
     .part = Part::end,
     .help = "End an answer that repeats a pattern: at least min_count times, with min_pattern_size to "
             "max_pattern_size tokens"},
    {.name = "include_stop_str_in_output",
     .member = member_path<&P::include_stop_str_in_output>,
     .part = Part::reports,
     .help = "Keep the stop string in the answer"},
    {.name = "skip_special_tokens",
     .member = member_path<&P::skip_special_tokens>,
     .part = Part::reports,
     .help = "Leave special tokens out of the answer"},
    {.name = "prompt_logprobs",
     .member = member_path<&P::logprobs, &LogprobRequest::prompt>,
     .part = Part::reports,
     .help = "Number of log-probabilities to report for each prompt token; -1: the whole vocabulary",
     .least = -1},
    {.name = "logprob_token_ids",
     .member = member_path<&P::logprobs, &LogprobRequest::token_ids>,
     .part = Part::reports,
     .help = "Token ids whose log-probabilities are reported, instead of the most likely tokens"},
    {.name = "truncate_prompt_tokens",
     .member = member_path<&P::truncate_prompt_tokens>,
     .part = Part::prompt,
     .help = "Maximum number of prompt tokens; tokens at the beginning are removed. -1: the number that fits "
             "into the context",
     .least = -1},
};

Result<> check_range(const SamplingField& field, double value) {
  if (std::isfinite(value) && value <= field.most &&
      (field.above_least ? value > field.least : value >= field.least))
    return {};
  if (std::isinf(field.most)) return invalid(field.name, "must be at least {}, got {}", field.least, value);
  return invalid(field.name, "must be in {}{}, {}], got {}", field.above_least ? '(' : '[', field.least,
                 field.most, value);
}

template <class T>
Result<> check_value(const SamplingField& field, const T& value) {
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, double>)
    return check_range(field, value);
  else if constexpr (std::is_same_v<T, std::optional<int>>)
    return value ? check_range(field, *value) : Result<>();
  else
    return {};
}

}  // namespace

std::span<const SamplingField> sampling_fields() { return kFields; }

const SamplingField* find_sampling_field(std::string_view name) {
  const auto found = std::ranges::find(kFields, name, &SamplingField::name);
  return found == std::end(kFields) ? nullptr : found;
}

Result<> check_ranges(const SamplingParams& params) {
  for (const SamplingField& field : kFields)
    TRY_VOID(std::visit([&](auto member) { return check_value(field, member(params)); }, field.member));
  return {};
}

}  // namespace octavo
