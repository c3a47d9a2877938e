#include "sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/backends.h"

namespace octavo {
namespace {

using Tokens = std::vector<TokenId>;

class SamplerTest : public testing::Test {
 protected:
  static constexpr int kVocab = 40;

  std::vector<SampledToken> run(std::vector<float> logits, const std::vector<SampleRow>& rows,
                                SamplerOptions options = {}) {
    Sampler sampler(backend_, options);
    EXPECT_TRUE(sampler.reserve(std::ssize(rows), kVocab));
    return run(sampler, std::move(logits), rows);
  }
  std::vector<SampledToken> run(Sampler& sampler, std::vector<float> logits,
                                const std::vector<SampleRow>& rows) {
    const auto n = static_cast<std::int64_t>(rows.size());
    EXPECT_TRUE(sampler.launch(View::of(logits.data(), DType::f32, {n, kVocab}), rows));
    const auto results = sampler.collect();
    return {results.begin(), results.end()};
  }
  static std::vector<float> ramp(std::size_t rows) {
    std::vector<float> logits;
    for (std::size_t i = 0; i < rows * kVocab; ++i) logits.push_back(static_cast<float>(i % kVocab) / kVocab);
    return logits;
  }
  static double exact_logprob(int id) {
    double sum = 0;
    for (int i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(i) / kVocab);
    return static_cast<double>(id) / kVocab - std::log(sum);
  }

  Backend backend_ = make_cpu_backend({.threads = 2, .isa = {}}).value();
};

TEST_F(SamplerTest, ARowOfThePromptReportsItsListedTokens) {
  SamplingParams params;
  params.temperature = 0;
  const SequenceSampling sequence(params, {}, {}, 0, kVocab);
  const Tokens listed = {39, -1, 0};
  const auto results = run(ramp(2), {{.sequence = &sequence, .output = {}, .forced = 7, .listed = listed},
                                     {.sequence = &sequence, .output = {}}});
  EXPECT_EQ(results[0].id, 7);
  EXPECT_FALSE(results[1].logprobs);
  const auto& top = results[0].logprobs.value().top;
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].first, 39);
  EXPECT_NEAR(top[0].second, exact_logprob(39), 1e-5);
  EXPECT_EQ(top[1].first, -1);
  EXPECT_EQ(top[1].second, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(top[2].first, 0);
  EXPECT_NEAR(top[2].second, exact_logprob(0), 1e-5);
}

TEST_F(SamplerTest, NoRows) { EXPECT_TRUE(run({}, {}).empty()); }

TEST_F(SamplerTest, RowsOfAllKindsInOneStep) {
  SamplingParams greedy, biased, reporting, listing, prompt;
  greedy.temperature = biased.temperature = reporting.temperature = listing.temperature = 0;
  biased.tokens.logit_bias = {{5, 10.f}, {6, 11.f}};
  biased.tokens.bad_word_ids = {{6}};
  reporting.logprobs.output = 2;
  reporting.penalties.frequency = 2;
  listing.logprobs.token_ids = {0, 39, 0};
  listing.tokens.allowed_token_ids = {3, 33};
  prompt.logprobs.prompt = 1;
  const SequenceSampling a(greedy, {}, {}, 0, kVocab), b(biased, {}, {}, 0, kVocab),
      d(listing, {}, {}, 0, kVocab), e(prompt, {}, {}, 0, kVocab);
  SequenceSampling c(reporting, {}, {}, 0, kVocab);
  const Tokens output{39};
  c.append(39);

  const auto out = run(ramp(5), {{&a, {}}, {&b, {}}, {&c, output}, {&d, {}}, {&e, {}, {}, 7}});
  EXPECT_EQ(out[0].id, 39);
  EXPECT_FALSE(out[0].logprobs);
  EXPECT_EQ(out[1].id, 5);

  EXPECT_EQ(out[2].id, 38);
  ASSERT_TRUE(out[2].logprobs);
  EXPECT_EQ(out[2].logprobs->rank, 2);
  EXPECT_NEAR(out[2].logprobs->logprob, exact_logprob(38), 1e-6);
  ASSERT_EQ(out[2].logprobs->top.size(), 2u);
  EXPECT_EQ(out[2].logprobs->top[0].first, 39);
  EXPECT_EQ(out[2].logprobs->top[1].first, 38);

  EXPECT_EQ(out[3].id, 33);
  ASSERT_EQ(out[3].logprobs->top.size(), 3u);
  EXPECT_EQ(out[3].logprobs->top[2].first, 0);
  EXPECT_NEAR(out[3].logprobs->top[2].second, exact_logprob(0), 1e-6);

  EXPECT_EQ(out[4].id, 7);
  EXPECT_EQ(out[4].logprobs->rank, 33);
  EXPECT_NEAR(out[4].logprobs->logprob, exact_logprob(7), 1e-6);
  EXPECT_EQ(out[4].logprobs->top[0].first, 39);
}

// With penalties and bans, a row with draft tokens must sample the same token as a row that has these tokens
// as output tokens.
TEST_F(SamplerTest, DraftTokensCountAsOutput) {
  SamplingParams params;
  params.seed = 5;
  params.penalties.repetition = 1.4;
  params.penalties.frequency = 0.7;
  params.penalties.presence = 0.3;
  params.min_tokens = 3;
  params.tokens.bad_word_ids = {{39, 38}, {7, 38, 37}};
  params.logprobs.output = 3;
  const Tokens text{39, 7, 38, 7, 39, 2};
  for (std::size_t drafts = 0; drafts <= text.size(); ++drafts) {
    SequenceSampling whole(params, Tokens{3, 7}, Tokens{36}, 5, kVocab),
        part(params, Tokens{3, 7}, Tokens{36}, 5, kVocab);
    const std::span<const TokenId> all(text), output = all.first(text.size() - drafts);
    for (const TokenId id : all) whole.append(id);
    for (const TokenId id : output) part.append(id);
    const auto out =
        run(ramp(2), {{&whole, all}, {&part, output, all.last(drafts)}}, {.processed_logprobs = true});
    EXPECT_EQ(out[0].id, out[1].id) << drafts;
    EXPECT_EQ(out[0].logprobs->top, out[1].logprobs->top) << drafts;
    EXPECT_EQ(out[0].logprobs->logprob, out[1].logprobs->logprob) << drafts;
  }
}

TEST_F(SamplerTest, WholeVocabulary) {
  SamplingParams params;
  params.logprobs.output = -1;
  const SequenceSampling sequence(params, {}, {}, 0, kVocab);
  const auto out = run(ramp(1), {{&sequence, {}}});
  ASSERT_EQ(out[0].logprobs->top.size(), static_cast<std::size_t>(kVocab));
  for (int i = 0; i < kVocab; ++i)
    EXPECT_EQ(out[0].logprobs->top[static_cast<std::size_t>(i)].first, kVocab - 1 - i);
}

TEST_F(SamplerTest, BrokenLogitsAndTotalBansAreNoToken) {
  SamplingParams params, banned;
  banned.tokens.allowed_token_ids = {4};
  banned.tokens.bad_word_ids = {{4}};
  banned.logprobs.output = 1;
  const SequenceSampling a(params, {}, {}, 0, kVocab), b(banned, {}, {}, 0, kVocab);
  std::vector<float> logits = ramp(3);
  logits[2] = std::nanf("");
  const auto out = run(logits, {{&a, {}}, {&b, {}}, {&a, {}}});
  EXPECT_EQ(out[0].id, -1);
  EXPECT_EQ(out[1].id, -1);
  EXPECT_TRUE(std::isfinite(out[1].logprobs->logprob));
  EXPECT_GE(out[2].id, 0);
}

// A row gives the same token and logprobs in every batch, at every index.
TEST_F(SamplerTest, NeighboursDoNotMatter) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal(0, 2);
  Sampler sampler(backend_, {});
  ASSERT_TRUE(sampler.reserve(64, kVocab));
  std::vector<SamplingParams> params(64);
  std::vector<SequenceSampling> sequences;
  std::vector<Tokens> outputs;
  std::vector<float> logits;
  for (SamplingParams& p : params) {
    p.temperature = rng() % 4 == 0 ? 0 : 0.8;
    p.top_k = rng() % 2 == 0 ? 10 : 0;
    p.top_p = rng() % 2 == 0 ? 0.9 : 1;
    if (rng() % 2 == 0) p.logprobs.output = static_cast<int>(rng() % 5);
    if (rng() % 3 == 0) p.penalties.repetition = 1.3, p.penalties.presence = 0.5;
    if (rng() % 3 == 0) p.tokens.logit_bias = {{static_cast<TokenId>(rng() % kVocab), 2.f}};
    if (rng() % 3 == 0) p.tokens.allowed_token_ids = {1, 2, 3, 5, 8, 13, 21, 34};
    sequences.emplace_back(p, Tokens{1, 2}, Tokens{0}, rng(), kVocab);
    outputs.emplace_back(rng() % 9, static_cast<TokenId>(rng() % kVocab));
    for (const TokenId id : outputs.back()) sequences.back().append(id);
    for (int i = 0; i < kVocab; ++i) logits.push_back(normal(rng));
  }
  std::vector<SampleRow> rows;
  for (std::size_t i = 0; i < params.size(); ++i) rows.push_back({&sequences[i], outputs[i]});
  const auto together = run(sampler, logits, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto* row = logits.data() + i * kVocab;
    const auto alone = run(sampler, {row, row + kVocab}, {rows[i]})[0];
    EXPECT_EQ(alone.id, together[i].id);
    ASSERT_EQ(alone.logprobs.has_value(), together[i].logprobs.has_value());
    if (!alone.logprobs) continue;
    EXPECT_EQ(alone.logprobs->logprob, together[i].logprobs->logprob);
    EXPECT_EQ(alone.logprobs->rank, together[i].logprobs->rank);
    EXPECT_EQ(alone.logprobs->top, together[i].logprobs->top);
  }
}

}  // namespace
}  // namespace octavo
