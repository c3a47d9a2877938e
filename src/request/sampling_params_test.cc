#include "request/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace octavo {
namespace {

constexpr SamplingLimits kLimits{.vocab_size = 1000};

using Change = std::function<void(SamplingParams&)>;

std::string rejected_field(const Change& change) {
  SamplingParams p;
  change(p);
  const auto result = validated(p, kLimits);
  return result ? "" : result.error().field;
}

TEST(SamplingParams, DefaultsAreValid) { EXPECT_TRUE(validated({}, kLimits).has_value()); }

TEST(SamplingParams, EachRuleNamesItsField) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, Change>> bad = {
      {"n", [](auto& p) { p.n = 0; }},
      {"n", [](auto& p) { p.n = 16385; }},
      {"n", [](auto& p) { p.n = 2, p.temperature = 0; }},
      {"temperature", [](auto& p) { p.temperature = -0.1; }},
      {"temperature", [](auto& p) { p.temperature = 2.1; }},
      {"temperature", [=](auto& p) { p.temperature = inf; }},
      {"temperature", [](auto& p) { p.temperature = std::nan(""); }},
      {"top_p", [](auto& p) { p.top_p = 0; }},
      {"top_p", [](auto& p) { p.top_p = 1.01; }},
      {"top_k", [](auto& p) { p.top_k = -2; }},
      {"min_p", [](auto& p) { p.min_p = 1.5; }},
      {"presence_penalty", [](auto& p) { p.penalties.presence = 2.5; }},
      {"frequency_penalty", [](auto& p) { p.penalties.frequency = -2.5; }},
      {"repetition_penalty", [](auto& p) { p.penalties.repetition = 0; }},
      {"repetition_penalty", [](auto& p) { p.penalties.repetition = 1e-300; }},
      {"repetition_penalty", [](auto& p) { p.penalties.repetition = 1e300; }},
      {"logit_bias", [](auto& p) { p.tokens.logit_bias = {{1000, 1.f}}; }},
      {"allowed_token_ids", [](auto& p) { p.tokens.allowed_token_ids = {-1}; }},
      {"bad_words", [](auto& p) { p.tokens.bad_words = {""}; }},
      {"max_tokens", [](auto& p) { p.max_tokens = 0; }},
      {"min_tokens", [](auto& p) { p.min_tokens = 17; }},
      {"stop", [](auto& p) { p.stop = {""}; }},
      {"stop", [](auto& p) { p.stop.assign(33, "x"); }},
      {"stop", [](auto& p) { p.stop = {"x"}, p.detokenize = false; }},
      {"stop_token_ids", [](auto& p) { p.stop_token_ids = {1000}; }},
      {"repetition_detection", [](auto& p) { p.repetition_detection = {4, 2, 1}; }},
      {"repetition_detection", [](auto& p) { p.repetition_detection = {2, 4, 2}; }},
      {"repetition_detection", [](auto& p) { p.repetition_detection = {1025, 4, 2}; }},
      {"logprobs", [](auto& p) { p.logprobs.output = 21; }},
      {"logprobs", [](auto& p) { p.logprobs.output = -1; }},
      {"prompt_logprobs", [](auto& p) { p.logprobs.prompt = -2; }},
      {"logprob_token_ids", [](auto& p) { p.logprobs.token_ids.assign(129, 1); }},
      {"truncate_prompt_tokens", [](auto& p) { p.truncate_prompt_tokens = 0; }},
  };
  for (const auto& [field, change] : bad) EXPECT_EQ(rejected_field(change), field);
}

TEST(SamplingParams, NormalForm) {
  SamplingParams p;
  p.temperature = 0.001;
  p.top_k = -1;
  p.seed = -1;
  p.tokens.logit_bias = {{3, 400.f}};
  p.stop_token_ids = {5, 2, 5};
  const SamplingParams v = validated(p, kLimits).value();
  EXPECT_EQ(v.temperature, 0.01);
  EXPECT_EQ(v.top_k, 0);
  EXPECT_FALSE(v.seed.has_value());
  EXPECT_EQ(v.tokens.logit_bias[0].second, 100.f);
  EXPECT_EQ(v.stop_token_ids, (std::vector<TokenId>{2, 5}));

  p.temperature = 0;
  p.top_p = 0.5;
  EXPECT_EQ(validated(p, kLimits)->top_p, 1.0);
}

}  // namespace
}  // namespace octavo
