// Computes grammar masks. The mask worker computes a mask that takes longer than kStepWork. Its sequence
// is parked meanwhile, and the other sequences continue.
#pragma once

#include <cstdint>
#include <span>

#include "engine/loop/answer_table.h"
#include "engine/loop/mask_worker.h"
#include "schedule/scheduler.h"

namespace octavo {

class Guidance {
 public:
  // Costs of masks so far.
  struct Counters {
    std::int64_t filled = 0;
    std::int64_t nanoseconds = 0;  // time spent within steps
    std::int64_t deferred = 0;     // number of masks computed by the mask worker
  };

  Guidance(Scheduler& scheduler, AnswerTable& answers, MaskWorker& worker)
      : scheduler_(scheduler), answers_(answers), worker_(worker) {}

  // True if the next token's mask is ready or can be computed at once. False: the worker computes it.
  bool mask_is_ready(SequenceId sequence, Answer& answer);

  // Advances over the draft token and fills the mask of the token after it. False, and nothing changes:
  // the token is not allowed, it ends the text, or its mask takes too long.
  bool follow_draft(GuidedText& text, TokenId draft_token, std::span<std::int32_t> mask);

  // Call when the worker is done with the sequence's text. Returns the sequence, which is still parked.
  // Null: the sequence has ended.
  const Sequence* take_back(SequenceId sequence);

  int under_way() const {
    return under_way_;
  }  // number of texts that the worker has, including those of ended sequences
  const Counters& counters() const { return counters_; }

 private:
  Scheduler& scheduler_;
  AnswerTable& answers_;
  MaskWorker& worker_;
  Counters counters_;
  int under_way_ = 0;
};

}  // namespace octavo
