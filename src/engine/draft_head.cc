#include "engine/draft_head.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {

Result<> DraftHead::read(std::span<const ComputedText> texts) {
  read_.clear();
  begin_batch();
  std::int64_t stride = 0;
  for (const ComputedText& text : texts) stride = std::max(stride, std::ssize(text.blocks));
  Batch::Group& group = batch_.groups[0];
  group.table_stride = stride;
  for (const ComputedText& text : texts) {
    const int count = static_cast<int>(text.tokens.size());
    batch_.ids.insert(batch_.ids.end(), text.tokens.begin() + 1, text.tokens.end());
    batch_.ids.push_back(text.next);
    group.slots.insert(group.slots.end(), text.slots.begin(), text.slots.end());
    for (int i = 0; i < count; ++i) {
      batch_.positions.push_back(text.first + i);
      hidden_rows_.push_back(text.row + i);
    }
    group.tables.insert(group.tables.end(), text.blocks.begin(), text.blocks.end());
    end_sequence(text.sequence, text.first + count);
    read_.push_back({text.sequence, text.first + count, batch_.tokens() - 1, text.blocks});
  }
  return texts.empty() ? Result<>() : run(model_);
}

Result<> DraftHead::propose(std::span<Draft> drafts) {
  working_.clear();
  for (Draft& draft : drafts) take_up(draft);
  while (!working_.empty()) {
    TRY_VOID(sample());
    if (!working_.empty()) TRY_VOID(run_drafts());
  }
  return {};
}

// A text may have grown by more than the step has computed: then there is nothing to propose from.
void DraftHead::take_up(Draft& draft) {
  draft.tokens.clear();
  const auto read = std::ranges::find(read_, draft.sequence, &Read::sequence);
  if (draft.most <= 0 || read == read_.end() || read->end + 1 != static_cast<int>(draft.text.size())) return;
  const auto entry = samplings_.try_emplace(draft.sequence, draft, limits_.drawn,
                                            executor_->model().spec.vocab, tokens_.empty());
  working_.push_back({.draft = &draft,
                      .sampling = &entry.first->second,
                      .row = read->row,
                      .blocks = {read->blocks.begin(), read->blocks.end()},
                      .next_own = limits_.num_blocks +
                                  static_cast<std::int32_t>(std::ssize(working_)) * limits_.own_blocks});
}

Result<> DraftHead::sample() {
  row_tokens_.clear();
  rows_.clear();
  for (const Working& w : working_) {
    row_tokens_.push_back(w.row);
    rows_.push_back(w.sampling->row(*w.draft));
  }
  TRY_VOID(executor_->sample(row_tokens_, rows_));
  TRY(const std::span<const SampledToken> results, executor_->collect());
  CHECK(results.size() == working_.size(), "{} results for {} rows", results.size(), working_.size());
  take_drafts(results);
  return {};
}

// Those that want another stay in working_. Broken numbers make no draft token.
void DraftHead::take_drafts(std::span<const SampledToken> results) {
  std::size_t row = 0;
  std::erase_if(working_, [&](const Working& w) {
    const TokenId draft_token = results[row++].id;
    if (draft_token < 0) return true;
    w.draft->tokens.push_back(tokens_.empty() ? draft_token : tokens_[static_cast<std::size_t>(draft_token)]);
    return static_cast<int>(w.draft->tokens.size()) == w.draft->most;
  });
}

// The head reads the draft token before, with the row that it has made itself.
Result<> DraftHead::run_drafts() {
  begin_batch();
  std::size_t stride = 0;
  for (Working& w : working_) {
    const int position = static_cast<int>(w.draft->text.size() + w.draft->tokens.size()) - 2;
    const auto block = static_cast<std::size_t>(position / limits_.block_size);
    if (block >= w.blocks.size()) w.blocks.resize(block + 1, kNoBlock);
    if (w.blocks[block] == kNoBlock) w.blocks[block] = w.next_own++;
    stride = std::max(stride, w.blocks.size());
    batch_.ids.push_back(w.draft->tokens.back());
    batch_.positions.push_back(position);
    batch_.groups[0].slots.push_back(std::int64_t{w.blocks[block]} * limits_.block_size +
                                     position % limits_.block_size);
    hidden_rows_.push_back(w.row);
    w.row = batch_.tokens() - 1;
    end_sequence(w.draft->sequence, position + 1);
  }
  Batch::Group& group = batch_.groups[0];
  group.table_stride = static_cast<std::int64_t>(stride);
  for (const Working& w : working_) {
    group.tables.insert(group.tables.end(), w.blocks.begin(), w.blocks.end());
    group.tables.insert(group.tables.end(), stride - w.blocks.size(), kNoBlock);
  }
  return run(*executor_);
}

void DraftHead::begin_batch() {
  batch_.ids.clear();
  batch_.positions.clear();
  batch_.query_starts.assign(1, 0);
  batch_.lengths.clear();
  batch_.sequences.clear();
  batch_.groups.resize(1);
  batch_.groups[0].tables.clear();
  batch_.groups[0].slots.clear();
  hidden_rows_.clear();
}

void DraftHead::end_sequence(std::uint64_t sequence, int length) {
  batch_.query_starts.push_back(batch_.tokens());
  batch_.lengths.push_back(length);
  batch_.sequences.push_back(SequenceId{sequence});
}

Result<> DraftHead::run(const LocalExecutor& from) {
  TRY_VOID(executor_->read_hidden(from, hidden_rows_));
  return executor_->forward(batch_);
}

}  // namespace octavo
