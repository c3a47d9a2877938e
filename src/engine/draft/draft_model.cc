#include "engine/draft/draft_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace octavo {
DraftModel::Past::Past(const Draft& draft, KvCache& cache, const DraftModelLimits& limits)
    : sampling(draft, limits.drawn, limits.vocab_size),
      identity(draft.identity),
      blocks(cache, limits.max_model_len) {}

DraftModel::DraftModel(std::unique_ptr<Executor> executor, const DraftModelLimits& limits)
    : executor_(std::move(executor)),
      limits_(limits),
      cache_(limits.num_blocks, limits.block_size, limits.groups),
      hasher_(limits.prefix_hash, limits.block_size) {
  CHECK(!executor_->asynchronous(), "draft tokens are needed at once");
}

Result<std::int64_t> DraftModel::propose(std::span<Draft> drafts) {
  ++uses_;
  working_.clear();
  for (Draft& draft : drafts) take_up(draft);
  std::erase_if(working_, [&](const Working& w) {
    if (make_room(*w.past, static_cast<int>(w.draft->text.size()) + w.draft->most - 1)) return false;
    forget_sequence(w.draft->sequence);
    return true;
  });
  std::int64_t first_ns = 0;
  for (plan_texts(); !plan_.empty(); plan_drafts()) {
    TRY_VOID(run());
    if (first_ns == 0) first_ns = now_ns();
  }
  return first_ns;
}

void DraftModel::take_up(Draft& draft) {
  draft.tokens.clear();
  draft.most = std::min(draft.most, limits_.max_model_len - static_cast<int>(draft.text.size()));
  if (draft.most <= 0) return;
  const auto [entry, is_new] = pasts_.try_emplace(draft.sequence, draft, cache_, limits_);
  Past& past = entry->second;
  is_new ? find_computed(past, draft.text) : settle(past, draft.text);
  CHECK(past.computed < static_cast<int>(draft.text.size()), "a text of {} tokens that has not grown",
        past.computed);
  past.last_use = uses_;
  working_.push_back({&draft, &past, static_cast<int>(draft.text.size()) - past.computed});
}

void DraftModel::find_computed(Past& past, std::span<const TokenId> text) {
  hasher_.extend(text, past.identity, past.keys);
  find_prefix(cache_, {text, past.keys, past.identity}, match_);
  past.blocks.adopt(match_);
  past.computed = match_.blocks * limits_.block_size;
}

// Moves the position after a step: accepted draft tokens are now part of the text, and the KV of rejected
// draft tokens will be overwritten.
void DraftModel::settle(Past& past, std::span<const TokenId> text) {
  for (const TokenId draft_token : past.fed) {
    // The last token is always computed again, because its logits give the next token.
    if (past.computed + 1 >= static_cast<int>(text.size()) ||
        text[static_cast<std::size_t>(past.computed)] != draft_token)
      break;
    ++past.computed;
  }
  past.fed.clear();
  hasher_.extend(text.first(static_cast<std::size_t>(past.computed)), past.identity, past.keys);
  past.blocks.publish(past.computed, {text, past.keys, past.identity});
  past.blocks.leave_window(past.computed);
}

// Allocates blocks for `tokens` tokens. If there are too few free blocks, evicts sequences that are not in
// the current call.
bool DraftModel::make_room(Past& past, int tokens) {
  while (!past.blocks.reserve(tokens)) {
    const auto oldest =
        std::ranges::min_element(pasts_, {}, [](const auto& entry) { return entry.second.last_use; });
    if (oldest->second.last_use == uses_) return false;
    forget_sequence(oldest->first);
  }
  return true;
}

void DraftModel::forget_sequence(std::uint64_t sequence) {
  const auto past = pasts_.find(sequence);
  if (past == pasts_.end()) return;
  given_up_.clear();
  past->second.blocks.give_up(given_up_);
  for (const BlockId block : given_up_) cache_.pool.release(block);
  pasts_.erase(past);
}

void DraftModel::end(std::uint64_t sequence, std::span<const TokenId> text, int) {
  if (const auto past = pasts_.find(sequence); past != pasts_.end()) settle(past->second, text);
  forget_sequence(sequence);
}

// Plans the tokens of the texts that are not computed yet. Texts with few such tokens come first, so that
// their draft tokens do not wait for a long prompt.
void DraftModel::plan_texts() {
  plan_.sequences.clear();
  std::ranges::stable_sort(working_, {}, &Working::missing);
  int budget = limits_.max_tokens;
  for (const Working& w : working_) {
    const int count = std::min(w.missing, budget);
    if (count == 0) break;
    budget -= count;
    const auto tokens =
        w.draft->text.subspan(static_cast<std::size_t>(w.past->computed), static_cast<std::size_t>(count));
    plan(w, w.past->computed, tokens, count == w.missing);
    w.past->computed += count;
  }
  std::erase_if(working_,
                [](const Working& w) { return w.past->computed < static_cast<int>(w.draft->text.size()); });
}

void DraftModel::plan_drafts() {
  plan_.sequences.clear();
  for (const Working& w : working_) {
    const std::vector<TokenId>& draft_tokens = w.draft->tokens;
    plan(w, static_cast<int>(w.draft->text.size() + draft_tokens.size()) - 1, std::span(draft_tokens).last(1),
         true);
    w.past->fed.push_back(draft_tokens.back());
  }
}

void DraftModel::plan(const Working& w, int first, std::span<const TokenId> tokens, bool samples) {
  PlannedSequence& p = plan_.sequences.emplace_back();
  p.sequence = SequenceId{w.draft->sequence};
  p.first = first;
  p.count = static_cast<int>(tokens.size());
  p.tokens = tokens;
  p.samples = samples;
  p.blocks = &w.past->blocks;
}

// Computes the plan and adds one draft token to each sequence in working_. The plan has the same order as
// working_.
Result<> DraftModel::run() {
  pack(plan_, cache_.group_count(), limits_.block_size, batch_);
  TRY_VOID(executor_->forward(batch_));
  row_tokens_.clear();
  rows_.clear();
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    if (!plan_.sequences[i].samples) continue;
    const Working& w = working_[rows_.size()];
    row_tokens_.push_back(batch_.query_starts[i + 1] - 1);
    rows_.push_back(w.past->sampling.row(*w.draft));
  }
  TRY_VOID(executor_->sample(row_tokens_, rows_));
  TRY(const std::span<const SampledToken> results, executor_->collect());
  take_drafts(results);
  return {};
}

// Appends the sampled draft tokens. Sequences that need more draft tokens stay in working_. A row with
// non-finite logits ends the draft.
void DraftModel::take_drafts(std::span<const SampledToken> results) {
  CHECK(results.size() == working_.size(), "{} results for {} rows", results.size(), working_.size());
  std::size_t row = 0;
  std::erase_if(working_, [&](const Working& w) {
    const TokenId draft_token = results[row++].id;
    if (draft_token < 0) return true;
    w.draft->tokens.push_back(draft_token);
    return static_cast<int>(w.draft->tokens.size()) == w.draft->most;
  });
}

}  // namespace octavo
