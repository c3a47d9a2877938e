// Draft tokens of the step loop: the proposer reads what a step computed and proposes tokens for the next
// step, after the output tokens of this one are handed over.
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
    std::array<std::int64_t, kDraftTokensMax> accepted = {};  // by position in the draft
  };

  // proposer: null for none. proposes: false on an asynchronous executor, whose next step runs already.
  Drafting(Scheduler& scheduler, AnswerTable& answers, Proposer* proposer, DraftPolicy policy, bool proposes)
      : scheduler_(scheduler),
        answers_(answers),
        proposer_(proposer),
        policy_(std::move(policy)),
        proposes_(proposer != nullptr && proposes) {}

  // The step samples after these draft tokens of one sequence.
  void note_planned(std::span<const TokenId> drafts);
  // Marks the rows whose draft tokens were not drawn.
  void drop_rejected(RowList& rows, std::span<const SampledToken> results);
  // What the proposer may read of the step, while its sequences still exist.
  void note_texts(const StepPlan& plan, const Batch& batch, const RowList& rows,
                  std::span<const SampledToken> results);
  // The sequence may take draft tokens into the next step.
  void want(const RowOwner& owner);
  // Has the proposer read the step, and propose for all who want. Error: the device failed.
  Result<> propose(int sequences);
  void note_computed(const StepRecord& record);
  void end(const Sequence& sequence, SequenceId id);

  const Counters& counters() const { return counters_; }

 private:
  static bool takes_drafts(const Answer& answer);
  static void keep_allowed(Answer& answer, std::vector<TokenId>& draft_tokens);
  Draft draft_for(const RowOwner& owner, int sequences);
  Result<std::int64_t> draft_texts(int sequences);

  Scheduler& scheduler_;
  AnswerTable& answers_;
  Proposer* const proposer_;
  DraftPolicy policy_;
  const bool proposes_;
  std::vector<RowOwner> wanting_;
  std::vector<Draft> drafts_;        // for those, and further ones kept for their memory
  std::vector<ComputedText> texts_;  // of the step
  Counters counters_;
};

}  // namespace octavo
