// Runs the steps of pooling models. A step computes whole prompts and applies a pooling head to each
// prompt.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execute/executor.h"
#include "engine/loop/answer_table.h"
#include "request/engine_info.h"
#include "schedule/scheduler.h"

namespace octavo {

class Pooling {
 public:
  Pooling(const EngineInfo& info, Scheduler& scheduler, Executor& executor, AnswerTable& answers)
      : info_(info), scheduler_(scheduler), executor_(executor), answers_(answers) {}

  // Computes the plan's prompts and applies the pooling heads. Returns the outputs of the heads, valid
  // until the executor's next forward().
  Result<std::span<const float>> compute(const StepPlan& plan);
  void commit(const StepPlan& plan, std::span<const float> numbers, std::int64_t now_us);

 private:
  Task task_of(const PlannedSequence& s) const { return answers_[s.tag].accepted->request.task; }

  const EngineInfo& info_;
  Scheduler& scheduler_;
  Executor& executor_;
  AnswerTable& answers_;
  // Scratch memory of compute().
  std::vector<std::int32_t> starts_;
  std::vector<std::uint8_t> heads_;
};

}  // namespace octavo
