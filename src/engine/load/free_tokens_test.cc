// Tests the number of free tokens, with executors whose steps take given times.
#include "engine/load/free_tokens.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

class Timed final : public Executor {
 public:
  explicit Timed(std::function<std::int64_t(int)> ns_of_tokens) : ns_of_tokens_(std::move(ns_of_tokens)) {}

  bool asynchronous() const override { return false; }
  Result<> forward(const Batch& batch) override {
    steps.push_back(batch.tokens());
    now += ns_of_tokens_(batch.tokens());
    return {};
  }
  Result<> sample(std::span<const std::int32_t>, std::span<const SampleRow> rows) override {
    results_.resize(rows.size());
    return {};
  }
  Result<std::span<SampledToken>> collect() override { return results_; }

  std::int64_t now = 0;
  std::vector<int> steps;

 private:
  std::function<std::int64_t(int)> ns_of_tokens_;
  std::vector<SampledToken> results_;
};

StepTimes times_of(Timed& executor, int num_blocks) {
  SchedulerOptions scheduler;
  scheduler.num_blocks = num_blocks;
  scheduler.max_model_len = 1024;
  return measure_step_times(executor, scheduler, 100, [&] { return executor.now; }).value();
}

int measured(Timed& executor, int num_blocks = 64) { return free_tokens_of(times_of(executor, num_blocks)); }

TEST(FreeTokens, AreThoseThatHardlyTakeLonger) {
  Timed alike([](int) { return 1000; });
  EXPECT_EQ(measured(alike), kFreeTokensMost);
  Timed by_token([](int tokens) { return 1000 * tokens; });
  EXPECT_EQ(measured(by_token), kFreeTokensFewest);
  Timed between(
      // 12 tokens take 1.58 times as long as one token, and 16 tokens take 1.79 times as long
      [](int tokens) { return 900 + 50 * tokens; });
  EXPECT_EQ(measured(between), 12);
}

TEST(FreeTokens, AreMeasuredOnceWhereStepsAreSlow) {
  Timed slow([](int tokens) { return 1'000'000'000 + 10'000'000 * tokens; });
  EXPECT_EQ(measured(slow), kFreeTokensMost);
  EXPECT_EQ(slow.steps, (std::vector<int>{1, 1, 2, 4, 8, 12, 16, 24, 32}));
}

TEST(FreeTokens, AreFoundWithTheTimesOfSteps) {
  Timed by_token([](int tokens) { return 1000 * tokens; });
  const StepTimes times = times_of(by_token, 64);
  for (const int tokens : {1, 3, 8, 12}) EXPECT_EQ(times.of(tokens), 1000 * tokens);
  EXPECT_EQ(times.of(32), 12'000);  // sizes above the time limit are not measured
}

TEST(FreeTokens, FitIntoTheCache) {
  Timed alike([](int) { return 1000; });
  EXPECT_EQ(measured(alike, 1), 16);
}

}  // namespace
}  // namespace octavo
