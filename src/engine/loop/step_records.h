// Times and sizes of recent steps.
#pragma once

#include <cstdint>

#include "engine/loop/answer_table.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepRecords {
 public:
  // Describes the plan of a step; times are 0.
  static StepRecord of_plan(const StepPlan& plan, AnswerTable& answers);

  void launched(int tokens) { tokens_.observe(tokens); }
  // The duration counts from the step's launch or the end of the previous step, whichever is later.
  StepRecord computed(StepNumber step, StepRecord record, std::int64_t began_us, std::int64_t now_us);

  const Histogram& tokens() const { return tokens_; }
  const RecentSteps& recent() const { return recent_; }
  // Running mean of the time for one prompt token, over steps with more prompt tokens than output tokens. 0:
  // no such step yet.
  double prompt_token_seconds() const { return prompt_token_seconds_; }

 private:
  std::int64_t computed_us_ = 0;  // time when the last step was computed
  Histogram tokens_ = step_token_histogram();
  RecentSteps recent_ = {};
  double prompt_token_seconds_ = 0;
};

}  // namespace octavo
