// One step of the engine, which the engine thread runs in a loop. Start to read here:
//
//   plan     choose the sequences of the step and their tokens     schedule/
//   pack     write the plan into flat arrays                        execute/batch.h
//   forward  compute hidden states from token ids and the KV cache  model/, kernels/
//   sample   compute logits of the selected rows, sample tokens     rows.h, sample/
//   commit   append tokens to sequences, send them to clients       step.cc
//
// When a step commits a token, the grammar reads the token and computes the mask of the next token
// (guidance.h).
//
// With a proposer, a step also computes draft tokens, and samples a token after each draft token as if it
// were accepted (drafting.h). A draft token is accepted if the previous row sampled the same token. All
// rows after the first rejected draft token are dropped. Sampling depends only on the seed and the
// position, so the output is the same as without draft tokens.
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
#include "engine/loop/step_costs.h"
#include "engine/loop/step_records.h"
#include "request/engine_info.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepLoop {
 public:
  // `proposer` is null without speculative decoding.
  StepLoop(const EngineInfo& info, Scheduler& scheduler, Executor& executor, AnswerTable& answers,
           MaskWorker& mask_worker, Proposer* proposer, DraftPolicy draft_policy,
           const WorkFigures& work_figures, bool reports_work)
      : scheduler_(scheduler),
        executor_(executor),
        answers_(answers),
        guidance_(scheduler, answers, mask_worker),
        drafting_(scheduler, answers, proposer, std::move(draft_policy), !executor.asynchronous()),
        pooling_(info, scheduler, executor, answers),
        chooser_(scheduler, answers, guidance_),
        records_(reports_work ? std::optional(work_figures) : std::nullopt),
        costs_(scheduler, answers, work_figures) {}

  // Runs one step. Returns false if no sequence is scheduled. Returns an error if the device failed
  // permanently.
  Result<bool> run();

  // Called when the mask worker has finished the mask of the sequence. The sequence is then scheduled
  // again.
  void resume(SequenceId sequence);

  bool finish(SequenceId sequence);

  bool uses_adapter(int slot) const;

  // Returns the last plan. Some of its sequences may have ended.
  const StepPlan& last_plan() const { return plan_; }
  const StepRecords& records() const { return records_; }
  const StepCosts& costs() const { return costs_; }
  const Guidance& guidance() const { return guidance_; }
  const Drafting::Counters& draft_counters() const { return drafting_.counters(); }
  void forget_blocks(std::span<const std::int32_t> blocks) { drafting_.forget(blocks); }

 private:
  struct Flight {
    StepNumber step{};
    StepRecord record;
    std::int64_t began_us = 0;
    std::vector<StepPart> parts{};
  };
  struct Launched {
    StepPlan plan;
    Batch batch;
    Flight flight;
  };

  Result<bool> run_one();
  void plan();
  Result<bool> run_in_stages();
  Result<Flight> launch();
  void note_scheduled();
  Result<> sample(Flight&& flight);
  void choose_rows();
  Result<> commit();
  Result<> commit_pooled(Flight& flight);
  void note_computed(Flight& flight, std::int64_t now_ns);
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
  StepCosts costs_;

  StepPlan plan_;
  Batch batch_;
  RowList rows_;
  std::optional<Flight> flying_;   // the step that is sampled but not committed
  std::deque<Launched> launched_;  // steps in the pipeline, oldest first; empty with one stage
};

}  // namespace octavo
