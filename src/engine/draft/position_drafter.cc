#include "engine/draft/position_drafter.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace octavo {

Result<std::unique_ptr<PositionDrafter>> PositionDrafter::create(std::shared_ptr<Backend> backend,
                                                                 const LocalExecutor& model,
                                                                 std::unique_ptr<PositionHeads> heads,
                                                                 int sequences, bool drawn) {
  const std::int64_t vocab = heads->model().spec.vocab;
  TRY_VOID(heads->reserve(sequences));
  std::unique_ptr<PositionDrafter> drafter(
      new PositionDrafter(std::move(backend), model, std::move(heads), drawn));
  TRY_VOID(drafter->sampler_.reserve(sequences, vocab));
  TRY(drafter->logits_,
      drafter->backend_->device->allocate(static_cast<std::size_t>(sequences * vocab) * sizeof(float)));
  return drafter;
}

PositionDrafter::PositionDrafter(std::shared_ptr<Backend> backend, const LocalExecutor& model,
                                 std::unique_ptr<PositionHeads> heads, bool drawn)
    : backend_(std::move(backend)),
      model_(model),
      heads_(std::move(heads)),
      drawn_(drawn),
      sampler_(*backend_, {}) {}

Result<> PositionDrafter::read(std::span<const ComputedText> texts) {
  read_.clear();
  for (const ComputedText& text : texts) {
    const auto count = static_cast<int>(text.tokens.size());
    read_.push_back({text.sequence, text.first + count, text.row + count - 1});
  }
  return {};
}

// Sequences with the largest Draft::most come first in working_, so that each position of the drafts is
// computed only for the first sequences of working_.
Result<std::int64_t> PositionDrafter::propose(std::span<Draft> drafts) {
  working_.clear();
  for (Draft& draft : drafts) take_up(draft);
  if (working_.empty()) return {};
  std::ranges::stable_sort(working_, std::ranges::greater(), [](const Working& w) { return w.draft->most; });
  TRY_VOID(begin());
  std::int64_t first_ns = 0;
  for (int position = 0; position < heads_->positions(); ++position) {
    while (!working_.empty() && working_.back().draft->most <= position) working_.pop_back();
    if (working_.empty()) break;
    TRY_VOID(draft_position(position));
    if (first_ns == 0) first_ns = now_ns();
  }
  return first_ns;
}

// If the text has grown by more tokens than the last step computed, no row has the hidden state of the last
// token, so the sequence gets no draft tokens.
void PositionDrafter::take_up(Draft& draft) {
  draft.tokens.clear();
  const auto read = std::ranges::find(read_, draft.sequence, &Read::sequence);
  if (draft.most <= 0 || read == read_.end() || read->end + 1 != static_cast<int>(draft.text.size())) return;
  const auto entry = samplings_.try_emplace(draft.sequence, draft, drawn_, heads_->model().spec.vocab,
                                            heads_->tokens().empty());
  working_.push_back(
      {.draft = &draft, .sampling = &entry.first->second, .row = read->row, .last = draft.text.back()});
}

Result<> PositionDrafter::begin() {
  numbers_.clear();
  for (const Working& w : working_) numbers_.push_back(w.row);
  TRY(const View rows, upload(row_memory_, numbers_));
  heads_->begin(model_.residual(*std::ranges::max_element(numbers_) + 1), rows);
  return {};
}

// Proposes the tokens at position `position` of all drafts. A row with non-finite logits ends the draft.
Result<> PositionDrafter::draft_position(int position) {
  numbers_.clear();
  rows_.clear();
  for (const Working& w : working_) {
    numbers_.push_back(w.last);
    rows_.push_back(w.sampling->row(*w.draft));
  }
  TRY(const View ids, upload(id_memory_, numbers_));
  const View logits = logits_.view(DType::f32, {std::ssize(working_), heads_->model().spec.vocab});
  heads_->logits(position, ids, logits);
  TRY_VOID(sampler_.launch(logits, rows_));
  const std::span<SampledToken> results = sampler_.collect();
  CHECK(results.size() == working_.size(), "{} results for {} rows", results.size(), working_.size());
  for (std::size_t i = 0; i < working_.size(); ++i) {
    Working& w = working_[i];
    w.broken |= results[i].id < 0;
    if (w.broken) continue;
    const auto column = static_cast<std::size_t>(results[i].id);
    w.last = heads_->tokens().empty() ? results[i].id : heads_->tokens()[column];
    w.draft->tokens.push_back(w.last);
  }
  return {};
}

// The result is valid until `memory` is used again.
Result<View> PositionDrafter::upload(StepMemory& memory, std::span<const std::int32_t> numbers) {
  memory.clear();
  const auto part = memory.add<std::int32_t>(numbers.size());
  TRY_VOID(memory.fit(*backend_->device, *backend_->stream));
  std::ranges::copy(numbers, memory.host(part).begin());
  memory.upload(*backend_->device, *backend_->stream);
  return memory.device(part);
}

}  // namespace octavo
