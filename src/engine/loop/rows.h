// The rows that a step samples: which tokens of the batch, how, and for whom.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "engine/loop/guidance.h"
#include "sample/sampler.h"
#include "schedule/scheduler.h"

namespace octavo {

inline constexpr TokenId kNoDraft = -1;

struct RowOwner {
  SequenceId sequence;
  AnswerIndex answer;
  bool prompt;                    // the log-probability of a prompt token; otherwise the next output token
  int drafts = 0;                 // draft tokens before the row's own
  TokenId last_draft = kNoDraft;  // the last of them, which the row before it must have drawn
  bool dropped = false;           // a draft token before it was not accepted
};

// Three vectors of equal length, apart because the executor reads two of them.
class RowList {
 public:
  std::size_t size() const { return owners_.size(); }
  void clear() { cut(0); }
  void cut(std::size_t size);  // drops the rows from `size` on
  void add(const RowOwner& owner, std::int32_t token, const SampleRow& row);

  // Memory for the mask of the row that is added next.
  std::span<std::int32_t> next_mask(std::size_t words);
  std::span<const std::int32_t> next_mask_of(TokenId token, int vocab_size);  // allows only this token

  RowOwner& operator[](std::size_t row) { return owners_[row]; }
  const RowOwner& operator[](std::size_t row) const { return owners_[row]; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // index in the batch
  std::span<const SampleRow> rows() const { return rows_; }
  // Whether no row follows that may still be committed for the same answer.
  bool is_last(std::size_t row) const {
    return row + 1 == size() || owners_[row + 1].drafts == 0 || owners_[row + 1].dropped;
  }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<SampleRow> rows_;
  std::vector<RowOwner> owners_;
  std::vector<std::vector<std::int32_t>> masks_;  // by row
};

// Adds the rows of a step whose forward pass runs.
class RowChooser {
 public:
  RowChooser(Scheduler& scheduler, AnswerTable& answers, Guidance& guidance)
      : scheduler_(scheduler), answers_(answers), guidance_(guidance) {}

  // One row for each prompt token whose log-probability is wanted.
  void add_prompt_rows(const PlannedSequence& s, int first_token, RowList& rows);

  // One row after the last known token and one after each draft token. A grammar follows the draft tokens as
  // far as it allows them and their masks are ready, and goes back. False: nothing is left to follow and the
  // text may end here. Error: nothing is left, and it may not end.
  Result<bool> add_answer_rows(const PlannedSequence& s, int last_token, RowList& rows);

 private:
  void add(const PlannedSequence& s, const RowOwner& owner, std::int32_t token, SampleRow row, RowList& rows);

  Scheduler& scheduler_;
  AnswerTable& answers_;
  Guidance& guidance_;
  std::vector<TokenId> bans_;  // scratch
};

}  // namespace octavo
