// One step of the engine: the page to read first.
//
//   plan     who computes how many tokens                schedule/
//   pack     the plan as flat arrays                     batch.h
//   forward  ids and cached past to hidden states        model/, kernels/
//   sample   logits of the rows that matter to tokens    sample/
//   commit   tokens to their sequences and their owners  here
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/answer_table.h"
#include "engine/batch.h"
#include "engine/executor.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepLoop {
 public:
  StepLoop(Scheduler& scheduler, Executor& executor, AnswerTable& answers)
      : scheduler_(scheduler), executor_(executor), answers_(answers) {}

  // Runs one step. False: there was nothing to do. An error means that the device failed for good.
  Result<bool> run();

  // What grammars have cost so far.
  struct MaskCounters {
    std::int64_t filled = 0;
    std::int64_t nanoseconds = 0;
  };
  const MaskCounters& mask_counters() const { return mask_counters_; }

 private:
  // Whose row it was that is being sampled, and why.
  struct RowOwner {
    SequenceId sequence;
    AnswerIndex answer;
    bool prompt;  // the log-probability of a prompt token; otherwise the next token of the answer
  };

  void note_scheduled();
  void choose_rows();
  void add_row(const PlannedSequence& s, int token, TokenId forced, std::span<const std::int32_t> mask = {});
  bool fill_mask(const PlannedSequence& s, std::size_t place, std::span<const std::int32_t>& mask);
  Result<> commit_flying();
  bool jump_forward(const RowOwner& owner, std::int64_t now_us);

  Scheduler& scheduler_;
  Executor& executor_;
  AnswerTable& answers_;

  StepPlan plan_;
  Batch batch_;
  // The rows being sampled: index of the token in the batch, what to choose, for whom.
  std::vector<std::int32_t> row_tokens_;
  std::vector<SampleRow> rows_;
  std::vector<RowOwner> owners_;
  std::vector<std::vector<std::int32_t>> masks_;  // by place in the plan; used by sequences under a grammar
  StepNumber flying_ = 0;                         // the step that is sampled and not committed yet; 0: none
  MaskCounters mask_counters_;
};

}  // namespace octavo
