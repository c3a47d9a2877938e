#pragma once

#include <cstdint>
#include <optional>

#include "engine/loop/answer_table.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

// Work of one token and of one step on one device, for estimates.
struct WorkFigures {
  double operations_per_token = 0;
  double operations_per_pair = 0;  // operations for each (query, key) pair in attention
  double weight_bytes = 0;
  double kv_bytes_per_token = 0;
};

class StepRecords {
 public:
  // `figures` are for WorkStats; nullopt: no WorkStats.
  explicit StepRecords(std::optional<WorkFigures> figures) : figures_(figures) {
    work_.enabled = figures.has_value();
  }

  // Returns a record of the plan. Its times are 0 until computed() sets them.
  static StepRecord of_plan(const StepPlan& plan, AnswerTable& answers);

  // Counts the tokens of a step as vLLM does: computed prompt tokens and new output tokens.
  void committed(std::int64_t tokens) { tokens_.observe(static_cast<double>(tokens)); }
  // Completes the record. The duration starts when the step was launched or when the previous step ended,
  // whichever is later.
  StepRecord computed(StepNumber step, StepRecord record, std::int64_t began_us, std::int64_t now_us);

  const Histogram& tokens() const { return tokens_; }
  const RecentSteps& recent() const { return recent_; }
  const WorkStats& work() const { return work_; }
  // Returns the seconds per prompt token, as a running mean over steps with more prompt tokens than output
  // tokens. Returns 0 before the first such step.
  double prompt_token_seconds() const { return prompt_token_seconds_; }

 private:
  void add_work(const StepRecord& record);

  const std::optional<WorkFigures> figures_;
  WorkStats work_;
  std::int64_t computed_us_ = 0;
  Histogram tokens_ = step_token_histogram();
  RecentSteps recent_ = {};
  double prompt_token_seconds_ = 0;
};

}  // namespace octavo
