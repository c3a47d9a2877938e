#include "sample/finish.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

using Tokens = std::vector<TokenId>;
constexpr int kContext = 1000;

Request request_with(auto change) {
  Request request;
  request.prompt = {1, 2, 3};
  request.eos_ids = {0, 50};
  request.sampling.max_tokens = 10;
  change(request.sampling);
  return request;
}

std::pair<std::size_t, std::optional<Finish>> run(const Request& request, const Tokens& tokens,
                                                  int context = kContext) {
  FinishRule rule(request, context);
  for (std::size_t n = 1; n <= tokens.size(); ++n)
    if (auto finish = rule.after(std::span(tokens).first(n))) return {n, finish};
  return {tokens.size(), std::nullopt};
}

TEST(FinishRule, EndOfText) {
  const Request request = request_with([](auto&) {});
  EXPECT_EQ(run(request, {5, 6, 50, 7}), std::pair(3ul, std::optional(Finish{FinishReason::stop, {}})));
  const Request ignoring = request_with([](auto& p) { p.ignore_eos = true; });
  EXPECT_EQ(run(ignoring, {5, 6, 50, 7}).second, std::nullopt);
}

TEST(FinishRule, StopTokenIsNamed) {
  const Request request = request_with([](auto& p) { p.stop_token_ids = {7, 50}, p.ignore_eos = true; });
  EXPECT_EQ(run(request, {5, 7}), std::pair(2ul, std::optional(Finish{FinishReason::stop, 7})));
  EXPECT_EQ(run(request, {50}), std::pair(1ul, std::optional(Finish{FinishReason::stop, 50})));
}

TEST(FinishRule, MinTokensHoldsBackAllButTheLength) {
  const Request request = request_with([](auto& p) { p.min_tokens = 4, p.stop_token_ids = {7}; });
  EXPECT_EQ(run(request, {7, 50, 7, 50}), std::pair(4ul, std::optional(Finish{FinishReason::stop, {}})));
  EXPECT_EQ(run(request, {7, 7}, 5), std::pair(2ul, std::optional(Finish{FinishReason::length, {}})));
}

TEST(FinishRule, LengthIsMaxTokensOrTheRestOfTheContext) {
  const Tokens tokens(20, 9);
  EXPECT_EQ(run(request_with([](auto&) {}), tokens).first, 10u);
  EXPECT_EQ(run(request_with([](auto&) {}), tokens, 8).first, 5u);
  EXPECT_EQ(run(request_with([](auto& p) { p.max_tokens.reset(); }), tokens, 20).first, 17u);
  // The last token that fits into the context may be an end-of-text token.
  EXPECT_EQ(run(request_with([](auto& p) { p.max_tokens = 1; }), {50}).second->reason, FinishReason::stop);
}

// Reference implementation: a pattern repeats min_count times at the end of the output.
bool repeats(const Tokens& tokens, const RepetitionDetection& d) {
  for (int period = std::max(d.min_pattern_size, 1); period <= d.max_pattern_size; ++period) {
    const auto p = static_cast<std::size_t>(period), span = p * static_cast<std::size_t>(d.min_count);
    if (span > tokens.size()) continue;
    bool equal = true;
    for (std::size_t i = tokens.size() - span; i + p < tokens.size(); ++i)
      equal &= tokens[i] == tokens[i + p];
    if (equal) return true;
  }
  return false;
}

TEST(FinishRule, RepetitionFollowsItsDefinition) {
  std::mt19937 rng(3);
  int fired = 0;
  for (int round = 0; round < 3000; ++round) {
    const Request request = request_with([&](auto& p) {
      p.max_tokens = 200;
      p.min_tokens = rng() % 4 == 0 ? 20 : 0;
      const int most = static_cast<int>(rng() % 8) + 1;
      const int least = static_cast<int>(rng() % static_cast<unsigned>(most + 1));
      p.repetition_detection = {most, least, static_cast<int>(rng() % 4) + 2};
    });
    Tokens tokens;
    FinishRule rule(request, kContext);
    const std::size_t period = rng() % 6 + 1;
    for (int i = 0; i < 60; ++i) {
      const bool copy = tokens.size() >= period && rng() % 10 != 0;
      tokens.push_back(copy ? tokens[tokens.size() - period] : static_cast<TokenId>(rng() % 3 + 5));
      const auto finish = rule.after(tokens);
      const bool expected = static_cast<int>(tokens.size()) >= request.sampling.min_tokens &&
                            repeats(tokens, request.sampling.repetition_detection);
      ASSERT_EQ(finish.has_value(), expected) << "round " << round << ", " << tokens.size() << " tokens";
      if (!finish) continue;
      EXPECT_EQ(finish->reason, FinishReason::repetition);
      ++fired;
      break;
    }
  }
  EXPECT_GT(fired, 300);
}

}  // namespace
}  // namespace octavo
