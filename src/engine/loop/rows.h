// Selects the rows of a step, which are the tokens whose logits the step computes. Each row has an index in
// the batch, sampling parameters and an owner.
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
  // true: the row computes the logprob of a prompt token; false: the row samples an output token
  bool prompt;
  int drafts = 0;
  // last draft token before the row; accepted if the previous row sampled the same token
  TokenId last_draft = kNoDraft;
  bool dropped = false;  // an earlier draft token was rejected
};

// Three vectors of equal length. They are separate because the executor reads only two of them.
class RowList {
 public:
  std::size_t size() const { return owners_.size(); }
  void clear() { cut(0); }
  void cut(std::size_t size);
  void add(const RowOwner& owner, std::int32_t token, const SampleRow& row);

  std::span<std::int32_t> next_mask(std::size_t words);
  std::span<const std::int32_t> next_mask_of(TokenId token, int vocab_size);

  RowOwner& operator[](std::size_t row) { return owners_[row]; }
  const RowOwner& operator[](std::size_t row) const { return owners_[row]; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // index of each row in the batch
  std::span<const SampleRow> rows() const { return rows_; }
  // Returns whether no later row of the same answer may be committed.
  bool is_last(std::size_t row) const {
    return row + 1 == size() || owners_[row + 1].drafts == 0 || owners_[row + 1].dropped;
  }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<SampleRow> rows_;
  std::vector<RowOwner> owners_;
  std::vector<std::vector<std::int32_t>> masks_;
};

// Selects the rows of a step while the forward pass runs.
class RowChooser {
 public:
  RowChooser(Scheduler& scheduler, AnswerTable& answers, Guidance& guidance)
      : scheduler_(scheduler), answers_(answers), guidance_(guidance) {}

  // Adds a row for each prompt token whose logprob the request wants.
  void add_prompt_rows(const PlannedSequence& s, int first_token, RowList& rows);

  // Adds a row after the last known token and after each draft token. The grammar advances over the draft
  // tokens while it allows them and their masks are ready, and is then rolled back. Returns false if the
  // text may end and no token may follow. Returns an error if no token may follow but the text is
  // incomplete.
  Result<bool> add_answer_rows(const PlannedSequence& s, int last_token, RowList& rows);

 private:
  void add(const PlannedSequence& s, const RowOwner& owner, std::int32_t token, SampleRow row, RowList& rows);

  Scheduler& scheduler_;
  AnswerTable& answers_;
  Guidance& guidance_;
  std::vector<TokenId> bans_;
};

}  // namespace octavo
