// One step of the engine: the page to read first.
//
//   plan     who computes how many tokens                schedule/
//   pack     the plan as flat arrays                     execute/batch.h
//   forward  ids and cached past to hidden states        model/, kernels/
//   sample   logits of the rows that matter to tokens    rows.h, sample/
//   commit   tokens to their sequences and their owners  here
//
// Grammars see a token when it is committed, and make the mask of the next one (guidance.h).
//
// With a proposer, a step also computes draft tokens, and samples after each as if it were accepted
// (drafting.h). Sampling depends on the seed and the position alone: a draft token is accepted when the row
// before it drew the same token, the rows after the first rejected one are dropped, and the answer is, token
// for token, the one without draft tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "engine/execute/batch.h"
#include "engine/execute/executor.h"
#include "engine/loop/answer_table.h"
#include "engine/loop/drafting.h"
#include "engine/loop/guidance.h"
#include "engine/loop/pooling.h"
#include "engine/loop/rows.h"
#include "engine/loop/step_records.h"
#include "request/engine_info.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepLoop {
 public:
  // proposer: may be null.
  StepLoop(const EngineInfo& info, Scheduler& scheduler, Executor& executor, AnswerTable& answers,
           MaskWorker& mask_worker, Proposer* proposer, DraftPolicy draft_policy)
      : scheduler_(scheduler),
        executor_(executor),
        answers_(answers),
        guidance_(scheduler, answers, mask_worker),
        drafting_(scheduler, answers, proposer, std::move(draft_policy), !executor.asynchronous()),
        pooling_(info, scheduler, executor, answers),
        chooser_(scheduler, answers, guidance_) {}

  // Runs one step. False: there was nothing to do. Error: the device failed for good.
  Result<bool> run();

  // The mask worker has finished the sequence's text.
  void resume(SequenceId sequence);

  // Scheduler::finish, and the proposer's end.
  bool finish(SequenceId sequence);

  // Whether a launched step has tokens with the adapter in this slot.
  bool uses_adapter(int slot) const;

  const StepRecords& records() const { return records_; }
  const Guidance& guidance() const { return guidance_; }
  const Drafting::Counters& draft_counters() const { return drafting_.counters(); }

 private:
  struct Flight {
    StepNumber step{};
    StepRecord record;
    std::int64_t began_us = 0;
  };
  // A step that runs through the stages of the executor.
  struct Launched {
    StepPlan plan;
    Batch batch;
    Flight flight;
  };

  Result<bool> run_in_stages();
  Result<Flight> launch();
  void note_scheduled();
  Result<> sample(const Flight& flight);
  void choose_rows();
  Result<> commit();
  Result<> commit_pooled(const Flight& flight);
  void note_computed(const Flight& flight, std::int64_t now_us);
  void commit_result(std::size_t row, SampledToken&& result, std::int64_t now_us);
  bool commit_token(std::size_t row, SampledToken&& result, std::int64_t now_us);
  bool reports(const RowOwner& owner) const;
  bool follow_grammar(const RowOwner& owner, std::int64_t now_us);
  bool append(SequenceId sequence, AnswerIndex answer, std::span<const TokenId> tokens, std::int64_t now_us);
  void fail_broken(const RowOwner& owner, std::int64_t now_us);

  Scheduler& scheduler_;
  Executor& executor_;
  AnswerTable& answers_;
  Guidance guidance_;
  Drafting drafting_;
  Pooling pooling_;
  RowChooser chooser_;
  StepRecords records_;

  StepPlan plan_;
  Batch batch_;
  RowList rows_;                   // of the step in flight
  std::optional<Flight> flying_;   // the step that is sampled and not committed yet
  std::deque<Launched> launched_;  // oldest first; of executors with several stages
};

}  // namespace octavo
