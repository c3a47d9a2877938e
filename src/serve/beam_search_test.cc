#include "serve/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

constexpr int kVocabulary = 5;
constexpr TokenId kEnd = 4;

// A test model with a vocabulary of five tokens. Returns the log-probabilities of the token after `tokens`,
// the most likely token first.
TokenLogprobs behind(const std::vector<TokenId>& tokens, std::uint64_t seed) {
  const Hash128 hash = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(tokens)), seed);
  std::vector<double> weights;
  double total = 0;
  for (int i = 0; i < kVocabulary; ++i) {
    weights.push_back(1.0 + static_cast<double>((hash.low >> (8 * i)) & 0xff));
    total += weights.back();
  }
  TokenLogprobs row;
  for (int i = 0; i < kVocabulary; ++i)
    row.top.emplace_back(i, static_cast<float>(std::log(weights[static_cast<std::size_t>(i)] / total)));
  std::ranges::stable_sort(row.top, std::ranges::greater{}, &std::pair<TokenId, float>::second);
  return row;
}

std::vector<Beams::Answer> searched(const BeamRules& rules, std::uint64_t seed) {
  Beams beams(rules);
  while (!beams.done()) {
    std::vector<TokenLogprobs> rows;
    for (std::size_t i = 0; i < beams.count(); ++i) rows.push_back(behind(beams.tokens(i), seed));
    beams.extend(rows);
  }
  return beams.best();
}

struct Text {
  std::vector<TokenId> tokens;
  double sum = 0;
  bool ended = false;
};

double score_of(const Text& text, const BeamRules& rules) {
  return text.sum /
         std::pow(rules.prompt_tokens + static_cast<int>(text.tokens.size()), rules.length_penalty);
}

// Returns all possible texts of at most max_tokens tokens, the best first.
std::vector<Text> all_texts(const BeamRules& rules, std::uint64_t seed) {
  std::vector<Text> all, open{{}};
  for (int length = 0; length < rules.max_tokens; ++length) {
    std::vector<Text> longer;
    for (const Text& text : open)
      for (const auto& [id, logprob] : behind(text.tokens, seed).top) {
        Text next = text;
        next.sum += static_cast<double>(logprob);
        next.ended = id == kEnd;
        if (next.ended) {
          all.push_back(std::move(next));
          continue;
        }
        next.tokens.push_back(id);
        longer.push_back(std::move(next));
      }
    open = std::move(longer);
  }
  all.insert(all.end(), open.begin(), open.end());
  std::ranges::stable_sort(all, std::ranges::greater{}, [&](const Text& t) { return score_of(t, rules); });
  return all;
}

// vLLM's algorithm without optimisations: keeps every finished beam and runs until max_tokens.
std::vector<Text> plain_search(const BeamRules& rules, std::uint64_t seed) {
  std::vector<Text> beams{{}}, completed;
  for (int step = 0; step < rules.max_tokens && !beams.empty(); ++step) {
    std::vector<Text> longer;
    for (const Text& beam : beams) {
      const TokenLogprobs row = behind(beam.tokens, seed);
      for (std::size_t i = 0; i < std::min<std::size_t>(row.top.size(), 2 * rules.width); ++i) {
        Text next = beam;
        next.sum += static_cast<double>(row.top[i].second);
        next.ended = row.top[i].first == kEnd;
        if (!next.ended) next.tokens.push_back(row.top[i].first);
        (next.ended ? completed : longer).push_back(std::move(next));
      }
    }
    std::ranges::stable_sort(longer, std::ranges::greater{}, &Text::sum);
    longer.resize(std::min<std::size_t>(longer.size(), rules.width));
    beams = std::move(longer);
  }
  completed.insert(completed.end(), beams.begin(), beams.end());
  std::ranges::stable_sort(completed, std::ranges::greater{},
                           [&](const Text& t) { return score_of(t, rules); });
  completed.resize(std::min<std::size_t>(completed.size(), rules.width));
  return completed;
}

void expect_equal(const std::vector<Beams::Answer>& found, const std::vector<Text>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, wanted[i].tokens) << i;
    EXPECT_EQ(found[i].sum, wanted[i].sum) << i;
    EXPECT_EQ(found[i].end.has_value(), wanted[i].ended) << i;
  }
}

TEST(Beams, AWideSearchFindsTheBestOfAllTexts) {
  for (const double penalty : {-1.0, 0.0, 0.7, 1.0, 2.0})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const BeamRules rules{
          .width = 256, .length_penalty = penalty, .max_tokens = 4, .prompt_tokens = 3, .ends = {kEnd}};
      std::vector<Text> all = all_texts(rules, seed);
      std::vector<Beams::Answer> found = searched(rules, seed);
      all.resize(20);
      found.resize(20);
      expect_equal(found, all);
    }
}

TEST(Beams, ANarrowSearchIsVllms) {
  for (const int width : {1, 2, 3, 4})
    for (const double penalty : {-1.0, 0.0, 1.0, 3.0})
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const BeamRules rules{
            .width = width, .length_penalty = penalty, .max_tokens = 12, .prompt_tokens = 2, .ends = {kEnd}};
        expect_equal(searched(rules, seed), plain_search(rules, seed));
      }
}

TEST(Beams, AnEndIsKeptOnWishWithItsLogprob) {
  BeamRules rules{.width = 2, .max_tokens = 6, .logprobs = 1, .ends = {kEnd}, .keep_end = true};
  int ended = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const Beams::Answer& answer : searched(rules, seed)) {
      ended += answer.end.has_value();
      EXPECT_EQ(answer.end.has_value(), answer.tokens.back() == kEnd);
      ASSERT_EQ(answer.logprobs.size(), answer.tokens.size());
      double sum = 0;
      for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
        EXPECT_EQ(answer.logprobs[i].id, answer.tokens[i]);
        EXPECT_EQ(answer.logprobs[i].top.size(), 1U);
        EXPECT_EQ(answer.logprobs[i].rank == 1, answer.logprobs[i].top[0].first == answer.tokens[i]);
        sum += static_cast<double>(answer.logprobs[i].logprob);
      }
      EXPECT_EQ(sum, answer.sum);
    }
  EXPECT_GT(ended, 0);
}

// After a prompt of n tokens, the most likely token is 'a' + n % 3. The log-probability of each next letter
// is 1 less.
Script letter(const Request& request, int) {
  return {.tokens = {static_cast<TokenId>('a' + request.prompt.size() % 3)}, .end = FinishReason::length};
}

const std::string kBeams = kCompletion + R"(,"use_beam_search":true,"n":2)";

class BeamSearchTest : public ServeTest {};

TEST_F(BeamSearchTest, AnswersAreTheBestBeams) {
  serve(letter);
  const json::object body =
      reply("/v1/completions", kBeams + R"(,"max_tokens":3,"logprobs":1,"temperature":0})");
  const json::array& choices = body.at("choices").as_array();
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].at("index").as_int64(), 0);
  EXPECT_EQ(choices[0].at("text").as_string(), "bca");  // tokens after prompts of 4, 5 and 6 tokens
  EXPECT_EQ(choices[0].at("finish_reason").as_string(), "length");
  const json::array& logprobs = choices[1].at("logprobs").at("token_logprobs").as_array();
  double sum = 0;
  for (const json::value& logprob : logprobs) sum += logprob.as_double();
  EXPECT_EQ(sum, -2.5);  // two tokens of -0.5, and the second best letter (-1.5)
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 6);
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 4);
  EXPECT_EQ(engine_->submitted, 1 + 2 + 2);
}

TEST_F(BeamSearchTest, AnEndEndsABeam) {
  // After 6 tokens the most likely token is kEndToken, although other tokens could follow, too.
  serve([](const Request& request, int) {
    return Script{.tokens = {request.prompt.size() < 6 ? TokenId{'x'} : kEndToken},
                  .end = FinishReason::length};
  });
  const json::object body = reply("/v1/completions", kBeams + R"(,"max_tokens":8})");
  const json::object& best = body.at("choices").as_array()[0].as_object();
  EXPECT_EQ(best.at("text").as_string(), "xx");
  EXPECT_EQ(best.at("finish_reason").as_string(), "stop");
  EXPECT_EQ(best.at("stop_reason").as_int64(), kEndToken);
}

TEST_F(BeamSearchTest, ChatsHaveThemToo) {
  serve(letter);
  const json::object body =
      reply("/v1/chat/completions", kChat + R"(,"use_beam_search":true,"n":3,"max_tokens":2})");
  EXPECT_EQ(body.at("choices").as_array().size(), 3U);
}

TEST_F(BeamSearchTest, WhatFailsInAStepFailsTheRequest) {
  serve([](const Request& request, int index) {
    if (request.prompt.size() < 6) return letter(request, index);
    return Script{.end = FinishReason::error,
                  .error = Error{ErrorCode::internal, "the device is broken", ""}};
  });
  const http::Response response = post("/v1/completions", kBeams + R"(,"max_tokens":4})");
  EXPECT_EQ(response.status, 500);
  EXPECT_THAT(response.body, HasSubstr("error"));
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(BeamSearchTest, AFullQueueIsSaidAtOnce) {
  serve(letter);
  engine_->refusal_code = ErrorCode::resource_exhausted;
  EXPECT_EQ(post("/v1/completions", kBeams + "}").status, 429);
}

TEST_F(BeamSearchTest, TimeThatIsOverEndsAllBeams) {
  serve([](const Request& request, int index) {
    return request.prompt.size() < 6 ? letter(request, index) : Script{.hang = true};
  });
  // The time is long enough for the two steps before the beams hang.
  const http::Response response = post("/v1/completions", kBeams + R"(,"max_tokens":9,"timeout":4})");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  EXPECT_GE(engine_->aborts, 2);
}

}  // namespace
}  // namespace octavo
