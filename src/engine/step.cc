#include "engine/step.h"

#include <algorithm>

#include "base/clock.h"

namespace octavo {
namespace {

constexpr TokenId kChoose = -1;  // SampleRow::forced: no token is forced

}  // namespace

Result<bool> StepLoop::run() {
  scheduler_.plan(plan_);
  if (plan_.empty() && flying_ == 0) return false;

  if (!plan_.empty()) {
    note_scheduled();
    pack(plan_, scheduler_.cache().group_count(), scheduler_.options().block_size, batch_);
    executor_.forward(batch_);
  }
  if (flying_ != 0) TRY_VOID(commit_flying());  // step N - 1, while N runs
  if (plan_.empty()) return true;

  choose_rows();
  executor_.sample(row_tokens_, rows_);
  flying_ = plan_.step;
  if (!executor_.asynchronous()) TRY_VOID(commit_flying());
  return true;
}

void StepLoop::note_scheduled() {
  for (const PlannedSequence& s : plan_.sequences) {
    Answer& answer = answers_[s.tag];
    if (answer.times.scheduled_us == 0) {
      answer.times.scheduled_us = now_us();
      answer.cached_tokens = s.cached_tokens;
    }
  }
}

// Rows of sequences that ended while their forward pass ran are left out.
void StepLoop::choose_rows() {
  row_tokens_.clear();
  rows_.clear();
  owners_.clear();
  masks_.resize(std::max(masks_.size(), plan_.sequences.size()));
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    const PlannedSequence& s = plan_.sequences[i];
    if (!scheduler_.contains(s.sequence)) continue;
    const int first_token = batch_.query_starts[i];
    Answer& answer = answers_[s.tag];
    if (answer.params().prompt_logprobs) {
      // The logits of position p tell about the prompt's token at p + 1. After a preemption, positions come
      // again.
      const std::vector<TokenId>& prompt = answer.accepted->request.prompt;
      const int end = std::min(s.first + s.count, static_cast<int>(prompt.size()) - 1);
      for (int p = std::max(s.first, answer.prompt_logprobs_count); p < end; ++p)
        add_row(s, first_token + p - s.first, prompt[static_cast<std::size_t>(p) + 1]);
      answer.prompt_logprobs_count = std::max(answer.prompt_logprobs_count, end);
    }
    if (!s.samples) continue;
    std::span<const std::int32_t> mask;
    if (answer.matcher && !fill_mask(s, i, mask)) continue;
    add_row(s, first_token + s.count - 1, kChoose, mask);
  }
}

// Which tokens the grammar of a sequence lets follow. False: none, which has ended the answer.
bool StepLoop::fill_mask(const PlannedSequence& s, std::size_t place, std::span<const std::int32_t>& mask) {
  Answer& answer = answers_[s.tag];
  std::vector<std::int32_t>& words = masks_[place];
  words.resize((static_cast<std::size_t>(answer.sampling.vocab_size()) + 31) / 32);
  const std::int64_t began = now_ns();
  const Result<> filled = answer.matcher->fill_mask(words);
  mask_counters_.nanoseconds += now_ns() - began;
  ++mask_counters_.filled;
  mask = words;
  if (filled) return true;
  scheduler_.finish(s.sequence);
  answers_.fail(s.tag, filled.error().message, now_us());
  return false;
}

void StepLoop::add_row(const PlannedSequence& s, int token, TokenId forced,
                       std::span<const std::int32_t> mask) {
  row_tokens_.push_back(token);
  rows_.push_back({&answers_[s.tag].sampling, scheduler_.output(s.sequence), forced, mask});
  owners_.push_back({s.sequence, s.tag, forced != kChoose});
}

// Appends what the grammar forces, to be computed all at once by the next step. True: the answer has ended.
// Where a sampled token would be judged by more than the grammar, or the next step is already on its way,
// every token is sampled.
bool StepLoop::jump_forward(const RowOwner& owner, std::int64_t now_us) {
  Answer& answer = answers_[owner.answer];
  if (!answer.matcher || executor_.asynchronous()) return false;
  if (answer.params().logprobs || answer.sampling.restricts()) return false;
  for (const TokenId token : answer.matcher->forced_tokens()) {
    scheduler_.append(owner.sequence, token);
    if (answers_.deliver(owner.answer, {token, {}}, scheduler_.output(owner.sequence), now_us)) return true;
  }
  return false;
}

Result<> StepLoop::commit_flying() {
  TRY(const std::span<const SampledToken> results, executor_.collect());
  CHECK(results.size() == owners_.size(), "{} results for {} rows", results.size(), owners_.size());
  const std::int64_t now = now_us();
  // Broken numbers end their own request, before collect() lets others share the blocks they stand in.
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].id < 0 && scheduler_.finish(owners_[i].sequence))
      answers_.fail(owners_[i].answer,
                    "no token could be chosen: the logits are not numbers, or all are banned", now);
  }
  scheduler_.collect(flying_);
  flying_ = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RowOwner& owner = owners_[i];
    if (!scheduler_.contains(owner.sequence)) continue;
    if (owner.prompt) {
      answers_[owner.answer].prompt_logprobs.push_back(results[i].logprobs.value());
      continue;
    }
    scheduler_.commit(owner.sequence, results[i].id);
    if (answers_.deliver(owner.answer, results[i], scheduler_.output(owner.sequence), now) ||
        jump_forward(owner, now))
      scheduler_.finish(owner.sequence);
  }
  return {};
}

}  // namespace octavo
