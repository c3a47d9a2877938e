#include "engine/loop/step_costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <numeric>
#include <random>

#include "engine/testing/rig.h"

namespace octavo {
namespace {

TEST(DivideTime, SharesAreWithinOneOfTheirExactValueAndSumToTheAmount) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t count = 1 + random() % (round % 10 == 0 ? 300 : 5);
    const auto amount = static_cast<std::int64_t>(random() % (round % 2 == 0 ? 20 : 5'000'000'000));
    std::vector<double> weights(count);
    for (double& weight : weights)
      weight = random() % 4 == 0 ? 0 : std::exp(static_cast<double>(random() % 40));
    std::vector<std::int64_t> shares(count);
    divide(amount, weights, shares);
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), amount);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_GE(shares[i], 0);
      if (all > 0) {
        ASSERT_LT(std::abs(static_cast<double>(shares[i]) - static_cast<double>(amount) * weights[i] / all),
                  1.001);
      }
    }
  }
}

constexpr WorkFigures kFigures{
    .operations_per_token = 2e9, .operations_per_pair = 4e5, .weight_bytes = 2e9, .kv_bytes_per_token = 1e5};

std::vector<double> shares_of(const StepWeights& rule, std::vector<StepPart> parts) {
  std::vector<double> weights(parts.size());
  rule.weigh(parts, weights);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= all;
  return weights;
}

TEST(StepWeights, ALongContextPaysForItsAttention) {
  const StepWeights rule(kFigures);
  const auto decode = [](int length) { return StepPart{.first = length, .tokens = 1}; };
  const auto equal = shares_of(rule, {decode(500), decode(500)});
  EXPECT_DOUBLE_EQ(equal[0], equal[1]);
  // Both sequences share 2 GB of weights. Their keys and values have 1 GB and 0.01 GB.
  const auto long_one = shares_of(rule, {decode(9999), decode(99)});
  EXPECT_NEAR(long_one[0], (1 + 1.0) / 3.01, 1e-3);
  const auto prompt = shares_of(rule, {{.first = 0, .tokens = 500}, decode(500)});
  EXPECT_GT(prompt[0], 0.99);
  // Draft tokens count like other computed tokens.
  const auto drafts = shares_of(rule, {{.first = 9, .tokens = 1, .drafts = 3}, decode(9)});
  EXPECT_NEAR(drafts[0], 0.8, 0.01);
}

TEST(StepWeights, WithoutFiguresTokensCount) {
  EXPECT_EQ(shares_of(StepWeights({}), {{.first = 0, .tokens = 3}, {.first = 90, .tokens = 1}}),
            (std::vector{0.75, 0.25}));
}

TEST(StepWeights, MeasuredStepsCalibrateTheRule) {
  StepWeights rule(kFigures);
  EXPECT_EQ(rule.operations_per_byte(), 16);
  const std::vector<StepPart> decode{{.first = 0, .tokens = 1}}, prompt{{.first = 0, .tokens = 1000}};
  for (int i = 0; i < 100; ++i) {
    rule.note(decode, 20'000'000);     // 2 GB in 20 ms: 100 bytes per ns
    rule.note(prompt, 1'000'000'000);  // 2 T operations in 1 s: 2000 operations per ns
  }
  EXPECT_NEAR(rule.operations_per_byte(), 2e12 / 1e9 / 100, 3);
}

TEST(BlockTimeTest, CountsBlocksTimesNanoseconds) {
  AnswerCost cost;
  BlockTime blocks;
  blocks.hold(3, 1000, cost);
  blocks.hold(5, 1010, cost);  // 3 * 10
  blocks.settle(1100, cost);   // 5 * 90
  blocks.settle(1050, cost);   // the clock may go back
  blocks.hold(0, 1101, cost);  // 5 * 1
  blocks.settle(9000, cost);
  EXPECT_EQ(cost[CostUnit::kv_block_nanoseconds], 30 + 450 + 5);
}

struct Load {
  AnswerCost all;
  std::vector<AnswerCost> answers;
  std::int64_t output_tokens = 0;
  EngineStats stats;
};

// Returns only the costs that do not depend on time.
AnswerCost counted(AnswerCost cost) {
  for (const CostUnit unit : {CostUnit::compute_nanoseconds, CostUnit::kv_block_nanoseconds,
                              CostUnit::encode_nanoseconds, CostUnit::energy_microjoules})
    cost[unit] = 0;
  return cost;
}

// All requests wait until the engine resumes, so that two runs plan the same steps.
Load run_load(const Setup& setup) {
  Rig rig(setup);
  std::promise<void> paused;
  rig.engine->pause(PauseMode::keep, [&](const Result<>&) { paused.set_value(); });
  paused.get_future().wait();
  std::mt19937 random(11);
  std::vector<std::pair<std::shared_ptr<Recorder>, int>> sinks;
  for (unsigned i = 0; i < 40; ++i) {
    auto prompt = some_prompt(i % 3 == 0 ? 1 : i + 10, 5 + static_cast<int>(random() % 150));
    const int count = 1 + static_cast<int>(random() % 60);
    rig.learn(prompt, expected(prompt, count));
    Request request = request_for(std::move(prompt), count);
    request.sampling.n = i % 7 == 0 ? 3 : 1;
    sinks.emplace_back(std::make_shared<Recorder>(), request.sampling.n);
    EXPECT_TRUE(rig.engine->submit(std::move(request), sinks.back().first).has_value());
  }
  rig.engine->resume();
  Load load;
  for (const auto& [sink, n] : sinks) {
    sink->wait_ended(n);
    for (int answer = 0; answer < n; ++answer) {
      const Recorder::Record record = sink->record(answer);
      load.output_tokens += std::ssize(record.tokens);
      load.answers.push_back(record.ends.at(0).cost);
      load.all += load.answers.back();
    }
  }
  rig.expect_empty();
  load.stats = rig.engine->own_stats();
  return load;
}

class StepCostsTest : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, StepCostsTest, EngineModes::all(), EngineModes::name);

TEST_P(StepCostsTest, TheAnswersPayForEverything) {
  for (const bool tight : {false, true}) {
    const Load load = run_load(
        {.num_blocks = tight ? 24 : 200, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
    const auto sum = [&](CostUnit unit) { return load.all[unit]; };
    EXPECT_EQ(sum(CostUnit::compute_nanoseconds) + load.stats.costs.unassigned_ns,
              load.stats.costs.compute_ns);
    EXPECT_EQ(sum(CostUnit::output_tokens), load.output_tokens);
    EXPECT_EQ(sum(CostUnit::output_tokens), load.stats.tokens.generation);
    EXPECT_EQ(sum(CostUnit::prompt_tokens_cached), load.stats.tokens.prompt_cached);
    EXPECT_EQ(sum(CostUnit::prompt_tokens_computed) + load.stats.tokens.prompt_cached,
              load.stats.tokens.prompt);
    EXPECT_EQ(sum(CostUnit::draft_tokens), load.stats.drafts.tokens);
    const auto& accepted = load.stats.drafts.accepted;
    EXPECT_EQ(sum(CostUnit::draft_tokens_accepted),
              std::accumulate(accepted.begin(), accepted.end(), std::int64_t{0}));
    if (load.stats.preemptions == 0) {
      EXPECT_EQ(sum(CostUnit::tokens_recomputed), 0);
    }
    for (const AnswerCost& cost : load.answers) {
      EXPECT_GT(cost[CostUnit::compute_nanoseconds], 0);
      EXPECT_GT(cost[CostUnit::kv_block_nanoseconds], 0);
      for (const std::int64_t unit : cost.units) EXPECT_GE(unit, 0);
    }
    // An asynchronous device computes one step that no sequence needs. With several stages, even more steps
    // are computed.
    if (GetParam() == Mode::synchronous) {
      EXPECT_EQ(load.stats.costs.unassigned_ns, 0);
    }
  }
}

TEST_P(StepCostsTest, TwoRunsOfTheSameLoadAgree) {
  if (GetParam() == Mode::drafting || GetParam() == Mode::proposing)
    GTEST_SKIP() << "the number of draft tokens depends on measured times";
  const octavo::Setup setup{.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()};
  const Load first = run_load(setup), second = run_load(setup);
  ASSERT_EQ(first.answers.size(), second.answers.size());
  for (std::size_t i = 0; i < first.answers.size(); ++i)
    EXPECT_EQ(counted(first.answers[i]), counted(second.answers[i])) << i;
  EXPECT_GT(first.all[CostUnit::tokens_recomputed], 0);
}

TEST(StepCosts, EveryTokenOfAStepIsInTheCosts) {
  // Without a prefix cache and stages, the tokens of all steps are the prompt tokens, the tokens that are
  // computed again, and all output tokens except the last one of each sequence.
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .prefix_caching = false});
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 12; ++i) {
    sinks.push_back(std::make_shared<Recorder>());
    ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(i, 100), 15), sinks.back()).has_value());
  }
  AnswerCost all;
  for (const auto& sink : sinks) {
    sink->wait_ended(1);
    all += sink->record().ends.at(0).cost;
  }
  rig.expect_empty();
  const EngineStats stats = rig.engine->own_stats();
  std::int64_t computed = 0;
  for (const StepRecord& step : stats.recent_steps) {
    ASSERT_LT(step.number, std::ssize(stats.recent_steps)) << "more steps than records";
    computed += step.prompt_tokens + step.answer_tokens;
  }
  EXPECT_EQ(all[CostUnit::prompt_tokens_computed], 12 * 100);
  EXPECT_EQ(all[CostUnit::output_tokens], 12 * 15);
  EXPECT_EQ(all[CostUnit::prompt_tokens_computed] + all[CostUnit::tokens_recomputed] + 12 * 14, computed);
}

TEST(StepCosts, AnAnswerThatContinuesAfterADeadEnginePaysForThePromptOnce) {
  const std::vector<TokenId> prompt = some_prompt(3, 50);
  const std::vector<TokenId> tokens = expected(prompt, 20);
  Rig rig;
  const auto cost_of = [&](const AnswerCost& before) {
    Request request = request_for(prompt, 20);
    request.answers_so_far = {{.index = 0, .tokens = {tokens.begin(), tokens.begin() + 5}, .cost = before}};
    const auto sink = std::make_shared<Recorder>();
    EXPECT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
    sink->wait_ended(1);
    rig.engine->reset_prefix_cache();
    rig.expect_empty();
    return sink->record().ends.at(0).cost;
  };
  AnswerCost before;
  before[CostUnit::prompt_tokens_computed] = 50;
  before[CostUnit::output_tokens] = 5;
  before[CostUnit::compute_nanoseconds] = 1'000'000'000'000;
  const AnswerCost continued = cost_of(before);
  EXPECT_EQ(continued[CostUnit::prompt_tokens_computed], 50);
  EXPECT_EQ(continued[CostUnit::output_tokens], 20);
  EXPECT_EQ(continued[CostUnit::tokens_recomputed], 55);
  EXPECT_GT(continued[CostUnit::compute_nanoseconds], 1'000'000'000'000);
  // Another server has computed the first tokens, so this server has not computed the prompt before.
  const AnswerCost moved = cost_of({});
  EXPECT_EQ(moved[CostUnit::prompt_tokens_computed], 50);
  EXPECT_EQ(moved[CostUnit::tokens_recomputed], 5);
  EXPECT_EQ(moved[CostUnit::output_tokens], 15);
}

}  // namespace
}  // namespace octavo
