// Speculative decoding in the step loop. After the outputs of a step are sent, the proposer reads the step
// and proposes draft tokens for the next step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/draft_policy.h"
#include "engine/draft/proposer.h"
#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "engine/loop/rows.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

class Drafting {
 public:
  struct Counters {
    std::int64_t drafts = 0;
    std::int64_t tokens = 0;
    std::array<std::int64_t, kDraftTokensMax> accepted = {};  // [position in the draft]
  };

  // `proposer` is null without speculative decoding. `proposes` is false on an asynchronous executor,
  // because the next step is already running when a step's tokens are known.
  Drafting(Scheduler& scheduler, AnswerTable& answers, Proposer* proposer, DraftPolicy policy, bool proposes)
      : scheduler_(scheduler),
        answers_(answers),
        proposer_(proposer),
        policy_(std::move(policy)),
        proposes_(proposer != nullptr && proposes) {}

  void note_planned(AnswerIndex answer, std::span<const TokenId> drafts);
  // Marks the rows after a rejected draft token. Their results are invalid.
  void drop_rejected(RowList& rows, std::span<const SampledToken> results);
  // Copies the texts of the step for the proposer, because sequences may end before propose().
  void note_texts(const StepPlan& plan, const Batch& batch, const RowList& rows,
                  std::span<const SampledToken> results);
  // Marks a sequence that may get draft tokens for the next step.
  void want(const RowOwner& owner);
  // Passes the step to the proposer, and gets draft tokens for all marked sequences. Returns an error if
  // the device failed permanently.
  Result<> propose(int sequences);
  void note_computed(const StepRecord& record);
  // See Proposer::forget.
  void forget(std::span<const std::int32_t> blocks) {
    if (proposer_ != nullptr) proposer_->forget(blocks);
  }
  void end(const Sequence& sequence, SequenceId id);

  const Counters& counters() const { return counters_; }

 private:
  static bool takes_drafts(const Answer& answer);
  static bool may_follow(Answer& answer, grammar::Matcher& rule, TokenId token);
  static void keep_allowed(Answer& answer, std::vector<TokenId>& draft_tokens);
  Draft draft_for(const RowOwner& owner, int sequences);
  Result<std::int64_t> draft_texts(int sequences);

  Scheduler& scheduler_;
  AnswerTable& answers_;
  Proposer* const proposer_;
  DraftPolicy policy_;
  const bool proposes_;
  std::vector<RowOwner> wanting_;
  std::vector<Draft> drafts_;  // parallel to wanting_; further elements are kept to reuse their memory
  std::vector<ComputedText> texts_;
  Counters counters_;
};

}  // namespace octavo
