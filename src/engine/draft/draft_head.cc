#include "engine/draft/draft_head.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace octavo {

void DraftHead::forget(std::span<const std::int32_t> blocks) {
  for (const std::int32_t block : blocks) filled_[static_cast<std::size_t>(block)] = 0;
}

Result<> DraftHead::read(std::span<const ComputedText> texts) {
  read_.clear();
  begin_batch();
  for (const ComputedText& text : texts) {
    const std::size_t skipped = pass_over(text), count = text.tokens.size();
    if (skipped == count) continue;
    batch_.ids.insert(batch_.ids.end(), text.tokens.begin() + static_cast<std::ptrdiff_t>(skipped) + 1,
                      text.tokens.end());
    batch_.ids.push_back(text.next);
    const auto slots = text.slots.subspan(skipped);
    batch_.groups[0].slots.insert(batch_.groups[0].slots.end(), slots.begin(), slots.end());
    for (std::size_t i = skipped; i < count; ++i) {
      batch_.positions.push_back(text.first + static_cast<int>(i));
      hidden_rows_.push_back(text.row + static_cast<std::int32_t>(i));
    }
    const std::size_t block = first_block(text, text.first + static_cast<int>(skipped));
    const int begin = static_cast<int>(block) * limits_.block_size,
              end = text.first + static_cast<int>(count);
    end_sequence(text.sequence, end - begin);
    read_.push_back({text.sequence, end, batch_.tokens() - 1, begin, text.blocks.subspan(block)});
  }
  if (read_.empty()) return {};
  lay_out_tables(read_);
  return run(model_);
}

// Returns the number of leading tokens that the head skips. The head can compute a token only if it has
// read all earlier tokens of the same block. Updates filled_.
std::size_t DraftHead::pass_over(const ComputedText& text) {
  std::size_t skipped = 0;
  for (std::size_t i = 0; i < text.slots.size(); ++i) {
    std::int32_t& filled = filled_[static_cast<std::size_t>(text.slots[i] / limits_.block_size)];
    const auto offset = static_cast<std::int32_t>(text.slots[i] % limits_.block_size);
    if (offset > filled || !text.wanted) {
      filled = std::min(filled, offset);
      skipped = i + 1;
    } else {
      filled = offset + 1;
    }
  }
  return skipped;
}

// Returns the index of the first block from which on the head has read all tokens up to `position`.
std::size_t DraftHead::first_block(const ComputedText& text, int position) const {
  auto block = static_cast<std::size_t>(position / limits_.block_size);
  while (block > 0 && filled_[static_cast<std::size_t>(text.blocks[block - 1])] == limits_.block_size)
    --block;
  return block;
}

Result<std::int64_t> DraftHead::propose(std::span<Draft> drafts) {
  working_.clear();
  for (Draft& draft : drafts) take_up(draft);
  std::int64_t first_ns = 0;
  while (!working_.empty()) {
    TRY_VOID(sample());
    if (first_ns == 0) first_ns = now_ns();
    if (!working_.empty()) TRY_VOID(run_drafts());
  }
  return first_ns;
}

// If the text has grown by more tokens than the last step computed, no row has the hidden state of the last
// token, so the sequence gets no draft tokens.
void DraftHead::take_up(Draft& draft) {
  draft.tokens.clear();
  const auto read = std::ranges::find(read_, draft.sequence, &Read::sequence);
  if (draft.most <= 0 || read == read_.end() || read->end + 1 != static_cast<int>(draft.text.size())) return;
  const auto entry = samplings_.try_emplace(draft.sequence, draft, limits_.drawn,
                                            executor_->model().spec.vocab, tokens_.empty());
  working_.push_back({.draft = &draft,
                      .sampling = &entry.first->second,
                      .row = read->row,
                      .begin = read->begin,
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

// Appends the sampled draft tokens. Sequences that need more draft tokens stay in working_. A row with
// non-finite logits ends the draft.
void DraftHead::take_drafts(std::span<const SampledToken> results) {
  std::size_t row = 0;
  std::erase_if(working_, [&](const Working& w) {
    const TokenId draft_token = results[row++].id;
    if (draft_token < 0) return true;
    w.draft->tokens.push_back(tokens_.empty() ? draft_token : tokens_[static_cast<std::size_t>(draft_token)]);
    return static_cast<int>(w.draft->tokens.size()) == w.draft->most;
  });
}

// Each further draft token is a pass of the head, whose inputs are the previous draft token and the head's
// own hidden state of the previous pass.
Result<> DraftHead::run_drafts() {
  begin_batch();
  for (Working& w : working_) {
    const int position = static_cast<int>(w.draft->text.size() + w.draft->tokens.size()) - 2;
    const auto block = static_cast<std::size_t>((position - w.begin) / limits_.block_size);
    if (block >= w.blocks.size()) w.blocks.resize(block + 1, kNoBlock);
    if (w.blocks[block] == kNoBlock) w.blocks[block] = w.next_own++;
    batch_.ids.push_back(w.draft->tokens.back());
    batch_.positions.push_back(position);
    batch_.groups[0].slots.push_back(std::int64_t{w.blocks[block]} * limits_.block_size +
                                     position % limits_.block_size);
    hidden_rows_.push_back(w.row);
    w.row = batch_.tokens() - 1;
    end_sequence(w.draft->sequence, position + 1 - w.begin);
  }
  lay_out_tables(working_);
  return run(*executor_);
}

// Writes the block tables of the pass. `sequences` has the sequences of the pass, in order, with their
// blocks.
template <class Sequences>
void DraftHead::lay_out_tables(const Sequences& sequences) {
  std::size_t stride = 0;
  for (const auto& s : sequences) stride = std::max(stride, s.blocks.size());
  Batch::Group& group = batch_.groups[0];
  group.table_stride = static_cast<std::int64_t>(stride);
  for (const auto& s : sequences) {
    group.tables.insert(group.tables.end(), s.blocks.begin(), s.blocks.end());
    group.tables.insert(group.tables.end(), stride - s.blocks.size(), kNoBlock);
  }
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
