// Times and sizes of the last steps.
#pragma once

#include <cstdint>

#include "engine/loop/answer_table.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepRecords {
 public:
  // What a step computes; its times are 0.
  static StepRecord of_plan(const StepPlan& plan, AnswerTable& answers);

  void launched(int tokens) { tokens_.observe(tokens); }
  // Its microseconds count from its beginning or from the end of the step before, whichever is later.
  StepRecord computed(StepNumber step, StepRecord record, std::int64_t began_us, std::int64_t now_us);

  const Histogram& tokens() const { return tokens_; }
  const RecentSteps& recent() const { return recent_; }
  // Running mean of the time of a prompt token, over steps with more prompt tokens than output tokens. 0: no
  // such step yet.
  double prompt_token_seconds() const { return prompt_token_seconds_; }

 private:
  std::int64_t computed_us_ = 0;  // when the last step was
  Histogram tokens_ = step_token_histogram();
  RecentSteps recent_ = {};
  double prompt_token_seconds_ = 0;
};

}  // namespace octavo
