// Computes the grammar masks of the running sequences. A mask that takes longer than kStepWork is computed
// by the mask worker. Meanwhile the sequence is parked, and all other sequences continue.
#pragma once

#include <cstdint>
#include <span>

#include "engine/loop/answer_table.h"
#include "engine/loop/mask_worker.h"
#include "schedule/scheduler.h"

namespace octavo {

class Guidance {
 public:
  struct Counters {
    std::int64_t filled = 0;
    std::int64_t nanoseconds = 0;  // time for masks within steps
    std::int64_t deferred = 0;
  };

  Guidance(Scheduler& scheduler, AnswerTable& answers, MaskWorker& worker)
      : scheduler_(scheduler), answers_(answers), worker_(worker) {}

  // Returns true if the mask of the next token is ready. Computes the mask if that is fast; otherwise the
  // mask worker computes it.
  bool mask_is_ready(SequenceId sequence, Answer& answer);

  // Advances over a draft token and fills the mask of the next token. Returns false and changes nothing if
  // the token is forbidden, if it ends the text, or if the mask takes too long.
  bool follow_draft(GuidedText& text, TokenId draft_token, std::span<std::int32_t> mask);

  // Called when the mask worker has finished the text of the sequence. Returns the sequence, which is still
  // parked, or null if it has ended.
  const Sequence* take_back(SequenceId sequence);

  // texts at the mask worker, including those of ended sequences
  int under_way() const { return under_way_; }
  const Counters& counters() const { return counters_; }

 private:
  Scheduler& scheduler_;
  AnswerTable& answers_;
  MaskWorker& worker_;
  Counters counters_;
  int under_way_ = 0;
};

}  // namespace octavo
