// One step of the engine: the page to read first.
//
//   plan     who computes how many tokens                schedule/
//   pack     the plan as flat arrays                     batch.h
//   forward  ids and cached past to hidden states        model/, kernels/
//   sample   logits of the rows that matter to tokens    sample/
//   commit   tokens to their sequences and their owners  here
//
// Grammars see a token when it is committed, and make the mask of the next one. What takes them longer than
// kStepWork goes to the mask worker: the sequence is parked, and the others go on.
//
// With a proposer, a step also computes draft tokens, and samples behind each as if it were accepted;
// for the next step, the proposer makes them when the tokens of this one are committed and on their way.
// What is drawn depends on the seed and the place alone: so a draft token is accepted when the row before it
// drew the same token, the rows behind the first that did not are dropped, and the answer is, token for
// token, the one without draft tokens.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/draft_policy.h"
#include "engine/draft/proposer.h"
#include "engine/execute/batch.h"
#include "engine/execute/executor.h"
#include "engine/loop/answer_table.h"
#include "engine/loop/mask_worker.h"
#include "request/engine_info.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

class StepLoop {
 public:
  // proposer: may be null.
  StepLoop(const EngineInfo& info, Scheduler& scheduler, Executor& executor, AnswerTable& answers,
           MaskWorker& mask_worker, Proposer* proposer, DraftPolicy draft_policy)
      : info_(info),
        scheduler_(scheduler),
        executor_(executor),
        answers_(answers),
        mask_worker_(mask_worker),
        proposer_(proposer),
        draft_policy_(std::move(draft_policy)) {}

  // Runs one step. False: there was nothing to do. An error means that the device failed for good.
  Result<bool> run();

  // The mask worker is done with the sequence's text.
  void resume(SequenceId sequence);
  // Those that the mask worker has, of ended sequences, too.
  int masks_under_way() const { return masks_under_way_; }

  // Scheduler::finish; the proposer hears of it.
  bool finish(SequenceId sequence);

  // Whether a step on its way has tokens with the adapter in this place.
  bool uses_adapter(int place) const;

  const Histogram& step_tokens() const { return step_tokens_; }
  const RecentSteps& recent_steps() const { return recent_steps_; }
  // What a token of a prompt takes: a running mean over steps that compute more of these than of others. 0:
  // there was none yet.
  double prompt_token_seconds() const { return prompt_token_seconds_; }

  // What grammars have cost so far.
  struct MaskCounters {
    std::int64_t filled = 0;
    std::int64_t nanoseconds = 0;  // of steps
    std::int64_t deferred = 0;     // left to the mask worker
  };
  const MaskCounters& mask_counters() const { return mask_counters_; }

  // What draft tokens have come to.
  struct DraftCounters {
    std::int64_t drafts = 0;
    std::int64_t tokens = 0;
    std::array<std::int64_t, kDraftTokensMax> accepted = {};  // by place
  };
  const DraftCounters& draft_counters() const { return draft_counters_; }

 private:
  // Whose row it was that is being sampled, and why.
  struct RowOwner {
    SequenceId sequence;
    AnswerIndex answer;
    bool prompt;              // the log-probability of a prompt token; otherwise the next token of the answer
    int drafts = 0;           // draft tokens that the row stands behind
    TokenId last_draft = -1;  // the last of them, which the row before it must have drawn
    bool dropped = false;     // a draft token before it was not accepted
  };

  // A step that runs through the stages of the executor.
  struct Launched {
    StepPlan plan;
    Batch batch;
    StepRecord record;
    std::int64_t began_us = 0;
  };

  Result<> launch(StepRecord& record);
  Result<bool> run_in_stages();
  void place_images();
  void note_scheduled();
  StepRecord record_of_plan() const;
  void choose_rows();
  void add_prompt_rows(const PlannedSequence& s, int first_token);
  Result<bool> add_answer_rows(const PlannedSequence& s, int last_token);
  void drop_rows_from(std::size_t row);
  void add_row(const PlannedSequence& s, int token, const SampleRow& row);
  std::span<std::int32_t> next_mask(std::size_t words);
  std::span<const std::int32_t> mask_of(const Answer& answer, TokenId token);
  bool follow_draft(GuidedText& text, TokenId draft_token, SampleRow& row);
  bool mask_is_ready(SequenceId sequence, Answer& answer);
  Result<> commit_flying();
  Result<> commit_pooled(const StepRecord& record, std::int64_t began_us);
  void note_computed(StepNumber step, StepRecord record, std::int64_t began_us, std::int64_t now_us);
  void fail_broken(const RowOwner& owner, std::int64_t now_us);
  void drop_rows(std::span<const SampledToken> results);
  bool commit_row(std::size_t row, SampledToken&& result, std::int64_t now_us);
  bool reports(const RowOwner& owner) const;
  bool follow_grammar(const RowOwner& owner, std::int64_t now_us);
  bool append(SequenceId sequence, AnswerIndex answer, std::span<const TokenId> tokens, std::int64_t now_us);
  void note_texts(std::span<const SampledToken> results);
  static bool takes_drafts(const Answer& answer);
  void want_drafts(const RowOwner& owner);
  Result<> propose();
  Result<std::int64_t> draft_texts();
  static void keep_allowed(Answer& answer, std::vector<TokenId>& draft_tokens);

  const EngineInfo& info_;
  Scheduler& scheduler_;
  Executor& executor_;
  AnswerTable& answers_;
  MaskWorker& mask_worker_;
  Proposer* proposer_;
  DraftPolicy draft_policy_;

  StepPlan plan_;
  Batch batch_;
  // The rows being sampled: index of the token in the batch, what to choose, for whom.
  std::vector<std::int32_t> row_tokens_;
  std::vector<SampleRow> rows_;
  std::vector<RowOwner> owners_;
  std::vector<std::vector<std::int32_t>> masks_;  // by row; used by those behind draft tokens, and by thoughts that end
  std::vector<TokenId> bans_;                     // scratch
  std::vector<RowOwner> drafting_;                // sequences that may take draft tokens into the next step
  std::vector<Draft> drafts_;                     // for those, and further ones kept for their memory
  std::vector<std::int32_t> pooled_starts_;       // these two: scratch
  std::vector<std::uint8_t> pooled_heads_;
  std::vector<ComputedText> texts_;               // of the step, for a proposer
  std::deque<Launched> launched_;                 // oldest first; of executors with several stages
  StepNumber flying_ = 0;                         // the step that is sampled and not committed yet; 0: none
  StepRecord flying_record_;
  std::int64_t flying_began_us_ = 0;
  std::int64_t computed_us_ = 0;  // when the step before it was
  Histogram step_tokens_ = step_token_histogram();
  RecentSteps recent_steps_ = {};
  double prompt_token_seconds_ = 0;
  MaskCounters mask_counters_;
  int masks_under_way_ = 0;
  DraftCounters draft_counters_;
};

}  // namespace octavo
