#include "draft_tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/testing/scratch_directory.h"
#include "rig.h"

namespace octavo {
namespace {

constexpr int kRequests = 150;  // number of requests; guesses_soak runs more

class DraftTokens : public testing::TestWithParam<Proposing> {};

TEST_P(DraftTokens, ChangeNoAnswer) {
  const ScratchDirectory scratch;
  const DraftTokenReport report = check_draft_tokens(GetParam(), kRequests, 1, "cpu", scratch.path());
  fmt::print("{}: {} requests, {} differences, {} draft tokens, {} accepted, {} preemptions\n",
             GetParam().name, report.requests, report.differences, report.draft_tokens, report.accepted,
             report.preemptions);
  EXPECT_EQ(report.requests, kRequests);
  EXPECT_EQ(report.differences, 0);
  EXPECT_GT(report.draft_tokens, 0);
  if (GetParam().right_at_times) {
    EXPECT_GT(report.accepted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Method, DraftTokens, testing::ValuesIn(all_proposing()),
                         [](const auto& test) { return test.param.name; });

// Answers of three tokens to one prompt, each token one of the four most likely. The number of possible
// answers is small, so the probability of each is computed from the model's logprobs.
class Distribution : public testing::Test {
 protected:
  static constexpr int kKept = 4;  // top_k
  using Triple = std::array<TokenId, 3>;

  static std::unique_ptr<Engine> load(bool draft_tokens) {
    EngineOptions options;
    options.model.dir = "tests/data/drafters/markov";
    options.device.type = "cpu";
    options.device.threads = 1;
    options.schedule.max_num_seqs = 64;
    options.cache.memory_bytes = 8 << 20;
    if (draft_tokens) {
      options.speculation =
          SpeculativeOptions{.method = PositionHeadOptions{.kind = PositionHeadOptions::Kind::mlp_speculator,
                                                           .model = "tests/data/drafters/markov-mlp"},
                             .num_speculative_tokens = 3};
      options.speculation->per_batch_size = {{1, 64, 3}};
    }
    return load_engine(options).value();
  }
  static Request request(std::vector<TokenId> prompt, int tokens, std::int64_t seed, double temperature) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling.max_tokens = tokens;
    request.sampling.ignore_eos = true;
    request.sampling.top_k = kKept;
    request.sampling.seed = seed;
    request.sampling.temperature = temperature;
    return request;
  }

  // Returns the distribution of the next token at temperature 1.
  static std::map<TokenId, double> next(Engine& engine, const std::vector<TokenId>& text) {
    Request one = request(text, 1, 1, 1);
    one.sampling.logprobs.output = kKept;
    const Transcript answer = answers_of(engine, {one})[0][0];
    // The record has id, logprob and rank of the drawn token, then the list of most likely tokens.
    std::map<TokenId, double> shares;
    double sum = 0;
    for (std::size_t i = 3; i + 1 < answer.logprobs.size(); i += 2) {
      const double share = std::exp(std::bit_cast<float>(answer.logprobs[i + 1]));
      shares[static_cast<TokenId>(answer.logprobs[i])] = share;
      sum += share;
    }
    EXPECT_EQ(shares.size(), static_cast<std::size_t>(kKept));
    for (auto& [token, share] : shares) share /= sum;
    return shares;
  }

  static std::map<Triple, int> draw(Engine& engine, int count, double temperature) {
    std::vector<Request> requests;
    for (int seed = 0; seed < count; ++seed) requests.push_back(request(kPrompt, 3, seed, temperature));
    std::map<Triple, int> found;
    for (const Answers& answers : answers_of(engine, requests)) {
      const std::vector<TokenId>& tokens = answers[0].tokens;
      ++found[{tokens[0], tokens[1], tokens[2]}];
    }
    return found;
  }

  // Returns Pearson's statistic over the triples of tokens, in standard deviations (Wilson and Hilferty,
  // 1931). Triples with fewer than five expected draws are counted together.
  static double deviation(const std::map<Triple, double>& likely, const std::map<Triple, int>& found,
                          int count) {
    double sum = 0, rare = 0;
    int cells = 0, rarely = count;
    for (const auto& [triple, share] : likely) {
      const double expected = share * count;
      const auto seen = found.find(triple);
      const int times = seen == found.end() ? 0 : seen->second;
      if (expected < 5) {
        rare += expected;
        continue;
      }
      rarely -= times;
      sum += (times - expected) * (times - expected) / expected;
      ++cells;
    }
    if (rare >= 5) {
      sum += (rarely - rare) * (rarely - rare) / rare;
      ++cells;
    }
    const double freedom = cells - 1, part = 2 / (9 * freedom);
    return (std::cbrt(sum / freedom) - (1 - part)) / std::sqrt(part);
  }

  static inline const std::vector<TokenId> kPrompt{7, 90, 41, 3};
};

TEST_F(Distribution, DraftTokensDrawAsTheModelDoes) {
  constexpr int kCount = 3000;
  const auto plain = load(false), drafting = load(true);
  std::map<Triple, double> likely;
  for (const auto& [first, p] : next(*plain, kPrompt)) {
    std::vector<TokenId> text = kPrompt;
    text.push_back(first);
    for (const auto& [second, q] : next(*plain, text)) {
      text.push_back(second);
      for (const auto& [third, r] : next(*plain, text)) likely[{first, second, third}] = p * q * r;
      text.pop_back();
    }
  }
  const std::map<Triple, int> without = draw(*plain, kCount, 1), with = draw(*drafting, kCount, 1);
  EXPECT_EQ(with, without);
  EXPECT_GT(drafting->own_stats().drafts.accepted[0], kCount / 10);
  for (const auto& [triple, times] : with) EXPECT_TRUE(likely.contains(triple));
  const double chance = deviation(likely, with, kCount);
  fmt::print("chi-square: {:.2f} standard deviations from the expected value\n", chance);
  EXPECT_LT(chance, 3.5);
  // The test must be sensitive: draws at another temperature must not match.
  EXPECT_GT(deviation(likely, draw(*drafting, kCount, 0.8), kCount), 5);
}

}  // namespace
}  // namespace octavo
