#include "engine/execute/timed_executor.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "engine/load/model_figures.h"
#include "engine/testing/rig.h"
#include "model/model.h"

namespace octavo {
namespace {

std::unique_ptr<Engine> timed_engine_of(const StepTiming& timing) {
  SchedulerOptions options;
  options.num_blocks = 64;
  options.max_model_len = 512;
  EngineInfo info;
  info.vocab_size = kVocab;
  info.max_queued = 16;
  return *Engine::start(options, info, {.executor = std::make_unique<TimedExecutor>(timing, kVocab)});
}

Request timed_request(int prompt, int max_tokens) {
  Request request;
  for (int i = 0; i < prompt; ++i) request.prompt.push_back(i);
  request.sampling.max_tokens = max_tokens;
  request.sampling.seed = 5;
  return request;
}

// On a busy machine, a step may take longer than its time, but never shorter.
TEST(TimedExecutor, StepsTakeTheirTime) {
  const auto engine = timed_engine_of({.fixed_us = 3'000, .token_us = 100});
  const auto sink = std::make_shared<Recorder>();
  const std::int64_t began = now_us();
  ASSERT_TRUE(engine->submit(timed_request(100, 4), sink));
  sink->wait_ended(1);
  EXPECT_GE(now_us() - began, 3'000 + 100 * 100 + 3 * (3'000 + 100));
  EXPECT_EQ(sink->record().tokens.size(), 4U);
}

TEST(TimedExecutor, TheSameSeedSaysTheSame) {
  const auto engine = timed_engine_of({.fixed_us = 10});
  std::vector<std::vector<TokenId>> answers;
  for (int i = 0; i < 2; ++i) {
    const auto sink = std::make_shared<Recorder>();
    ASSERT_TRUE(engine->submit(timed_request(40, 20), sink));
    sink->wait_ended(1);
    answers.push_back(sink->record().tokens);
    for (const TokenId id : answers.back()) EXPECT_TRUE(id >= 0 && id < kVocab);
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_GT(engine->own_stats().prefix_cache.hits, 0) << "the cache is a real one";
}

TEST(ModelFigures, OfTheDemoModel) {
  const ModelSpec spec = *load_spec("models/demo");
  const ModelFigures figures = model_figures(spec);
  EXPECT_GT(figures.weight_bytes, 0);
  EXPECT_GT(figures.operations_per_token, 0);
  EXPECT_GT(figures.operations_per_pair, 0);
  EXPECT_GT(figures.kv_bytes_per_token, 0);
  EXPECT_LT(figures.operations_per_token, figures.weight_bytes * 1.01)
      << "two operations, two bytes a weight";
}

}  // namespace
}  // namespace octavo
