#include "timing/fit_timing.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

// Prompts of several lengths, and decode batches with several context lengths.
std::vector<StepWork> grid() {
  std::vector<StepWork> out;
  for (const std::int64_t prompt : {16, 64, 200, 512, 1024, 2048}) {
    out.emplace_back().add(0, prompt);
    out.emplace_back().add(1024, prompt);
  }
  for (const std::int64_t context : {16, 500, 2000, 8000})
    for (const int batch : {1, 2, 4, 8, 16, 32, 64}) {
      StepWork& work = out.emplace_back();
      for (int i = 0; i < batch; ++i) work.add(context, 1);
    }
  return out;
}

std::vector<TimedStep> timed(const StepTiming& timing) {
  std::vector<TimedStep> out;
  for (const StepWork& work : grid()) out.push_back({work, timing.microseconds(work)});
  return out;
}

void expect_found(const StepTiming& timing) {
  const StepTiming found = fit_timing(timed(timing));
  for (const TimedStep& step : timed(timing))
    EXPECT_LT(relative_error(found, step), 0.01)
        << step.work.tokens << " tokens, " << step.work.kv_tokens << " cached";
}

TEST(FitTiming, FindsTheTimingThatTheStepsHave) {
  expect_found({.fixed_us = 900, .weights_us = 5000, .token_us = 30, .kv_token_us = 0.05, .pair_us = 0.0004});
  expect_found({.fixed_us = 0, .weights_us = 20'000, .token_us = 2500, .kv_token_us = 12, .pair_us = 0.5});
  expect_found({.fixed_us = 400, .weights_us = 0, .token_us = 55, .kv_token_us = 0, .pair_us = 0.02});
}

TEST(FitTiming, NoiseMovesItLittle) {
  const StepTiming timing{
      .fixed_us = 300, .weights_us = 5000, .token_us = 40, .kv_token_us = 0.5, .pair_us = 0.004};
  std::vector<TimedStep> steps = timed(timing);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i].microseconds += steps[i].microseconds * (i % 2 ? 5 : -5) / 100;
  const StepTiming found = fit_timing(steps);
  for (const TimedStep& step : timed(timing)) EXPECT_LT(relative_error(found, step), 0.08);
}

TEST(FitTiming, NothingMeasuredIsNoTime) {
  const StepTiming found = fit_timing({});
  EXPECT_EQ(found.fixed_us + found.weights_us + found.token_us + found.kv_token_us + found.pair_us, 0);
}

}  // namespace
}  // namespace octavo
