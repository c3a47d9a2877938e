// Chi-square tests that compare the sampler's draws with the exact distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "kernels/backends.h"
#include "sample/sampler.h"

namespace octavo {
namespace {

using Tokens = std::vector<TokenId>;
using Probabilities = std::vector<double>;

constexpr std::size_t kVocab = 60;
constexpr std::size_t kDraws = 24000;
constexpr std::size_t kRowsPerStep = 240;
const Tokens kPrompt{1, 2, 3, 2};
const Tokens kOutput{40, 41, 41, 3, 41};
const Tokens kEos{7};

std::vector<float> test_logits() {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(0, 1.5f);
  std::vector<float> logits(kVocab);
  for (float& x : logits) x = normal(rng);
  logits[7] = logits[41] = logits[9] = 3;  // likely tokens with equal logits
  return logits;
}

Probabilities softmax(const std::vector<double>& logits) {
  const double max = *std::ranges::max_element(logits);
  Probabilities p;
  for (const double x : logits) p.push_back(std::exp(x - max));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

// Keeps the tokens for which keep(probability, number of more likely tokens, sum of the probabilities of more
// likely tokens) returns true.
Probabilities filtered(const Probabilities& p, const std::function<bool(double, std::size_t, double)>& keep) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  Probabilities kept(p.size(), 0);
  double mass = 0, total = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double x = p[order[i]];
    if (x > 0 && keep(x, i, mass)) total += kept[order[i]] = x;
    mass += x;
  }
  for (double& x : kept) x /= total;
  return kept;
}

Probabilities exact(const SamplingParams& params, const std::vector<float>& raw) {
  std::vector<double> logits(raw.begin(), raw.end());
  const auto ban = [&](TokenId id) { logits[static_cast<std::size_t>(id)] = -INFINITY; };
  for (std::size_t id = 0; id < kVocab; ++id) {
    const auto& allowed = params.tokens.allowed_token_ids;
    if (!allowed.empty() && std::ranges::find(allowed, static_cast<TokenId>(id)) == allowed.end())
      ban(static_cast<TokenId>(id));
  }
  for (const auto& [id, bias] : params.tokens.logit_bias) logits[static_cast<std::size_t>(id)] += bias;
  for (const Tokens& word : params.tokens.bad_word_ids) {
    const Tokens beginning(word.begin(), word.end() - 1);
    if (beginning.size() <= kOutput.size() &&
        std::equal(beginning.rbegin(), beginning.rend(), kOutput.rbegin()))
      ban(word.back());
  }
  if (kOutput.size() < static_cast<std::size_t>(params.min_tokens)) {
    for (const TokenId id : kEos) ban(id);
    for (const TokenId id : params.stop_token_ids) ban(id);
  }
  for (std::size_t id = 0; id < kVocab; ++id) {
    const auto in_output = std::ranges::count(kOutput, static_cast<TokenId>(id));
    const auto in_prompt = std::ranges::count(kPrompt, static_cast<TokenId>(id));
    double& x = logits[id];
    if (in_output + in_prompt > 0)
      x = x > 0 ? x / params.penalties.repetition : x * params.penalties.repetition;
    x -= params.penalties.frequency * static_cast<double>(in_output);
    if (in_output > 0) x -= params.penalties.presence;
  }
  for (double& x : logits) x /= params.temperature;
  Probabilities p = softmax(logits);
  const double most = *std::ranges::max_element(p);
  p = filtered(p, [&](double x, std::size_t, double) { return x >= params.min_p * most; });
  if (params.top_k > 0)
    p = filtered(p, [&](double, std::size_t before, double) {
      return before < static_cast<std::size_t>(params.top_k);
    });
  return filtered(p, [&](double, std::size_t, double mass) { return mass < params.top_p; });
}

// Returns how often each token was drawn in kDraws sequences with different seeds.
std::vector<std::size_t> draw_by_seed(const SamplingParams& params, const std::vector<float>& logits) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  Sampler sampler(backend, {});
  EXPECT_TRUE(sampler.reserve(kRowsPerStep, kVocab));
  std::vector<std::size_t> counts(kVocab, 0);
  for (std::size_t first = 0; first < kDraws; first += kRowsPerStep) {
    std::vector<SequenceSampling> sequences;
    std::vector<float> rows;
    for (std::size_t i = 0; i < kRowsPerStep; ++i) {
      sequences.emplace_back(params, kPrompt, kEos, first + i, static_cast<int>(kVocab));
      for (const TokenId id : kOutput) sequences.back().append(id);
      rows.insert(rows.end(), logits.begin(), logits.end());
    }
    std::vector<SampleRow> step;
    for (const SequenceSampling& sequence : sequences) step.push_back({&sequence, kOutput});
    EXPECT_TRUE(sampler.launch(View::of(rows.data(), DType::f32, {kRowsPerStep, kVocab}), step));
    for (const SampledToken& token : sampler.collect()) {
      EXPECT_GE(token.id, 0);
      ++counts[static_cast<std::size_t>(token.id)];
    }
  }
  return counts;
}

// Returns Pearson's statistic in standard deviations (Wilson and Hilferty's approximation). Tokens with
// fewer than five expected draws are counted together. Returns infinity if a token with probability 0 was
// drawn.
double deviation(const std::vector<std::size_t>& counts, const Probabilities& p) {
  const auto draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  double statistic = 0, rest_expected = 0, rest_counted = 0;
  int cells = 0;
  const auto add_cell = [&](double counted, double expected) {
    statistic += (counted - expected) * (counted - expected) / expected;
    ++cells;
  };
  for (std::size_t id = 0; id < p.size(); ++id) {
    const auto counted = static_cast<double>(counts[id]);
    if (p[id] == 0 && counted > 0) return INFINITY;
    if (p[id] * draws >= 5) {
      add_cell(counted, p[id] * draws);
    } else {
      rest_expected += p[id] * draws;
      rest_counted += counted;
    }
  }
  if (rest_expected >= 1) add_cell(rest_counted, rest_expected);
  if (cells < 2) return 0;
  const double freedom = cells - 1, v = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - v)) / std::sqrt(v);
}

constexpr double kTolerance = 4;  // standard deviations; a correct sampler exceeds this with probability 3e-5

struct Named {
  const char* name;
  std::function<void(SamplingParams&)> change;
};

class SamplerStatistics : public testing::TestWithParam<Named> {};

TEST_P(SamplerStatistics, DrawsFollowTheExactDistribution) {
  SamplingParams params;
  GetParam().change(params);
  const std::vector<float> logits = test_logits();
  const Probabilities p = exact(params, logits);
  const auto counts = draw_by_seed(params, logits);
  EXPECT_LT(deviation(counts, p), kTolerance);

  // The test must be sensitive: the draws must not match a distribution with a slightly higher temperature.
  if (std::ranges::count_if(p, [](double x) { return x > 0; }) < 2) return;
  SamplingParams warmer = params;
  warmer.temperature *= 1.15;
  EXPECT_GT(deviation(counts, exact(warmer, logits)), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Filters, SamplerStatistics,
    testing::Values(
        Named{"plain", [](auto&) {}}, Named{"cold", [](auto& p) { p.temperature = 0.5; }},
        Named{"hot", [](auto& p) { p.temperature = 1.8; }}, Named{"top_k", [](auto& p) { p.top_k = 7; }},
        Named{"top_k_ties",
              [](auto& p) {
                p.top_k = 2;
                p.temperature = 1;
                p.tokens.logit_bias = {{9, -0.5f}, {41, -0.2f}};
              }},
        Named{"top_p", [](auto& p) { p.top_p = 0.8; }}, Named{"min_p", [](auto& p) { p.min_p = 0.07; }},
        Named{"repetition", [](auto& p) { p.penalties.repetition = 1.7; }},
        Named{"frequency", [](auto& p) { p.penalties.frequency = 0.6; }},
        Named{"negative_frequency", [](auto& p) { p.penalties.frequency = -0.4; }},
        Named{"presence", [](auto& p) { p.penalties.presence = 1.1; }},
        Named{"logit_bias", [](auto& p) { p.tokens.logit_bias = {{4, 3.f}, {7, -2.f}, {59, 1.f}}; }},
        Named{"allowed", [](auto& p) { p.tokens.allowed_token_ids = {0, 5, 9, 31, 32, 33, 41, 59}; }},
        Named{"bad_words", [](auto& p) { p.tokens.bad_word_ids = {{9}, {3, 41, 7}, {41, 5}, {3, 4}}; }},
        Named{"min_tokens",
              [](auto& p) {
                p.min_tokens = 6;
                p.stop_token_ids = {9, 12};
              }},
        Named{"top_k_top_p",
              [](auto& p) {
                p.top_k = 12;
                p.top_p = 0.75;
              }},
        Named{"min_p_top_p",
              [](auto& p) {
                p.min_p = 0.02;
                p.top_p = 0.9;
              }},
        Named{"all_filters",
              [](auto& p) {
                p.temperature = 1.3;
                p.top_k = 20;
                p.top_p = 0.9;
                p.min_p = 0.04;
              }},
        Named{"everything",
              [](auto& p) {
                p.temperature = 1.2;
                p.top_k = 25;
                p.top_p = 0.95;
                p.min_p = 0.01;
                p.penalties.repetition = 1.2;
                p.penalties.frequency = 0.3;
                p.penalties.presence = -0.4;
                p.tokens.logit_bias = {{41, 2.f}, {10, 1.5f}, {11, -1.f}};
                p.tokens.bad_word_ids = {{41, 9}};
                p.min_tokens = 10;
                for (TokenId id = 0; id < 50; ++id) p.tokens.allowed_token_ids.push_back(id);
              }}),
    [](const auto& named) { return named.param.name; });

// The draws are at successive positions of one sequence.
TEST(SamplerPositions, DrawsFollowTheExactDistribution) {
  SamplingParams params;
  params.seed = 5;
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  Sampler sampler(backend, {});
  ASSERT_TRUE(sampler.reserve(1, kVocab));
  const SequenceSampling sequence(params, kPrompt, kEos, answer_seed(params, 0, 0), static_cast<int>(kVocab));
  const std::vector<float> logits = test_logits();
  std::vector<std::size_t> counts(kVocab, 0);
  const Tokens output(kDraws, 0);
  for (std::size_t position = 0; position < kDraws; ++position) {
    std::vector<float> row = logits;
    const SampleRow step{&sequence, std::span(output).first(position)};
    ASSERT_TRUE(sampler.launch(View::of(row.data(), DType::f32, {1, kVocab}), {&step, 1}));
    ++counts[static_cast<std::size_t>(sampler.collect()[0].id)];
  }
  EXPECT_LT(deviation(counts, exact(params, logits)), kTolerance);
}

}  // namespace
}  // namespace octavo
