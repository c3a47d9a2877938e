// Masks of grammars. A mask that takes longer than kStepWork goes to the mask worker: the sequence is parked,
// and the others continue.
#pragma once

#include <cstdint>
#include <span>

#include "engine/loop/answer_table.h"
#include "engine/loop/mask_worker.h"
#include "schedule/scheduler.h"

namespace octavo {

class Guidance {
 public:
  // Costs of grammars so far.
  struct Counters {
    std::int64_t filled = 0;
    std::int64_t nanoseconds = 0;  // of steps
    std::int64_t deferred = 0;     // left to the mask worker
  };

  Guidance(Scheduler& scheduler, AnswerTable& answers, MaskWorker& worker)
      : scheduler_(scheduler), answers_(answers), worker_(worker) {}

  // Whether the mask of the answer's next token is known, or can be made at once. Otherwise the worker makes
  // it.
  bool mask_is_ready(SequenceId sequence, Answer& answer);

  // Takes the draft token and fills the mask of what may follow it. False, and nothing was taken: the token
  // is not allowed, or ends the text, or the mask takes too long.
  bool follow_draft(GuidedText& text, TokenId draft_token, std::span<std::int32_t> mask);

  // The worker has finished the sequence's text. Null: the sequence has ended; else it is parked still.
  const Sequence* take_back(SequenceId sequence);

  int under_way() const {
    return under_way_;
  }  // texts that the worker has, those of ended sequences included
  const Counters& counters() const { return counters_; }

 private:
  Scheduler& scheduler_;
  AnswerTable& answers_;
  MaskWorker& worker_;
  Counters counters_;
  int under_way_ = 0;
};

}  // namespace octavo
