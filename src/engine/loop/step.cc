#include "engine/loop/step.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "engine/loop/batch_media.h"
#include "engine/loop/state_text.h"

namespace octavo {

Result<bool> StepLoop::run() {
  costs_.resume(now_ns());
  const Result<bool> ran = executor_.stages() > 1 ? run_in_stages() : run_one();
  costs_.pause(now_ns(), ran.value_or(true));
  return ran;
}

Result<bool> StepLoop::run_one() {
  plan();
  if (plan_.empty() && !flying_) return false;

  std::optional<Flight> launched;
  if (!plan_.empty()) {
    TRY(launched, launch());
    if (executor_.pools()) {
      TRY_VOID(commit_pooled(*launched));
      return true;
    }
  }
  if (flying_) TRY_VOID(commit());  // Step N is running on the device now, so the host commits step N - 1.
  if (!launched) return true;
  TRY_VOID(sample(*std::move(launched)));
  if (!executor_.asynchronous()) TRY_VOID(commit());
  return true;
}

// Launches steps until every pipeline stage has one, then completes the oldest step. A sequence is in at
// most one launched step.
Result<bool> StepLoop::run_in_stages() {
  plan();
  if (!plan_.empty()) {
    TRY(Flight flight, launch());
    launched_.push_back({plan_, batch_, std::move(flight)});
    if (std::ssize(launched_) < executor_.stages()) return true;
  }
  if (launched_.empty()) return false;
  Launched oldest = std::move(launched_.front());
  launched_.pop_front();
  plan_ = std::move(oldest.plan);
  batch_ = std::move(oldest.batch);
  TRY_VOID(sample(std::move(oldest.flight)));
  TRY_VOID(commit());
  return true;
}

void StepLoop::plan() {
  scheduler_.plan(plan_);
  if (!plan_.preempted.empty()) costs_.note_preempted(plan_, now_ns());
}

Result<StepLoop::Flight> StepLoop::launch() {
  const std::int64_t began_ns = now_ns();
  const std::int64_t began_us = began_ns / 1000;
  StepRecord record = StepRecords::of_plan(plan_, answers_);
  std::vector<StepPart> parts = costs_.parts_of(plan_, began_ns);
  if (log_enabled(LogLevel::debug)) log(LogLevel::debug, "{}", plan_text(plan_));
  note_scheduled();
  pack(plan_, scheduler_.cache().group_count(), scheduler_.options().block_size, batch_);
  batch_.adapters.clear();
  for (const PlannedSequence& s : plan_.sequences) batch_.adapters.push_back(answers_[s.tag].adapter);
  add_media(plan_, answers_, batch_);
  TRY_VOID(executor_.forward(batch_));
  record.forward_us = now_us() - began_us;
  return Flight{plan_.step, record, began_us, std::move(parts)};
}

void StepLoop::note_scheduled() {
  for (const PlannedSequence& s : plan_.sequences) {
    Answer& answer = answers_[s.tag];
    if (answer.times.scheduled_us == 0) {
      answer.times.scheduled_us = now_us();
      answer.cached_tokens = s.cached_tokens;
      answer.accepted->scheduled = true;
    }
    if (answer.accepted->request.report_progress) answers_.report_progress(s.tag, s.first);
    answer.preemptions = scheduler_.find(s.sequence)->counts.preemptions;
  }
}

Result<> StepLoop::sample(Flight&& flight) {
  choose_rows();
  TRY_VOID(executor_.sample(rows_.tokens(), rows_.rows()));
  flying_ = std::move(flight);
  return {};
}

// Adds the rows to sample. Skips sequences that ended during the forward pass, and sequences whose mask is
// not ready. A skipped sequence that continues computes its last token again in a later step.
void StepLoop::choose_rows() {
  rows_.clear();
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    const PlannedSequence& s = plan_.sequences[i];
    if (!scheduler_.contains(s.sequence)) continue;
    const int first_token = batch_.query_starts[i];
    const std::size_t rows_before = rows_.size();
    if (answers_[s.tag].params().logprobs.of_prompt()) chooser_.add_prompt_rows(s, first_token, rows_);
    if (!s.samples) continue;
    if (!guidance_.mask_is_ready(s.sequence, answers_[s.tag])) {
      scheduler_.retract(s.sequence);
      costs_.lost_blocks(s.tag, now_ns());
      continue;
    }
    const Result<bool> added = chooser_.add_answer_rows(s, first_token + s.count - 1, rows_);
    if (added.value_or(false)) {
      drafting_.note_planned(s.tag, s.drafts);
      continue;
    }
    rows_.cut(rows_before);
    // Ends the answer before its sequence, because the end of the answer's session and transfer still needs
    // the sequence.
    added ? answers_.stop(s.tag, now_us()) : answers_.fail(s.tag, added.error(), now_us());
    finish(s.sequence);
  }
}

Result<> StepLoop::commit() {
  TRY(const std::span<SampledToken> results, executor_.collect());
  CHECK(results.size() == rows_.size(), "{} results for {} rows", results.size(), rows_.size());
  const std::int64_t computed_ns = now_ns();
  const std::int64_t now = computed_ns / 1000;
  note_computed(*flying_, computed_ns);
  drafting_.drop_rejected(rows_, results);
  drafting_.note_texts(plan_, batch_, rows_, results);
  // A request with non-finite logits ends before collect(), so that no other request shares its blocks.
  for (std::size_t i = 0; i < results.size(); ++i)
    if (rows_[i].drafts == 0 && results[i].id < 0) fail_broken(rows_[i], now);
  scheduler_.collect(flying_->step);
  const std::int64_t prompt_tokens = flying_->record.prompt_tokens;
  const std::int64_t generated = answers_.counters().generation_tokens;
  flying_.reset();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!rows_[i].dropped && scheduler_.contains(rows_[i].sequence))
      commit_result(i, std::move(results[i]), now);
  records_.committed(prompt_tokens + answers_.counters().generation_tokens - generated);
  answers_.hand_over();
  return drafting_.propose(static_cast<int>(plan_.sequences.size()));
}

Result<> StepLoop::commit_pooled(Flight& flight) {
  TRY(const std::span<const float> numbers, pooling_.compute(plan_));
  const std::int64_t computed_ns = now_ns();
  const std::int64_t now = computed_ns / 1000;
  note_computed(flight, computed_ns);
  pooling_.commit(plan_, numbers, now);
  return {};
}

void StepLoop::note_computed(Flight& flight, std::int64_t now_ns) {
  drafting_.note_computed(records_.computed(flight.step, flight.record, flight.began_us, now_ns / 1000));
  costs_.computed(std::move(flight.parts), now_ns);
}

void StepLoop::commit_result(std::size_t row, SampledToken&& result, std::int64_t now_us) {
  const RowOwner& owner = rows_[row];
  if (result.id < 0 && !owner.prompt) {  // no token may follow the accepted draft token
    fail_broken(owner, now_us);
  } else if (reports(owner) && result.id >= 0 && !result.logprobs) {
    finish(owner.sequence);
    answers_.fail(owner.answer, out_of_memory(), now_us);
  } else if (owner.prompt ? !answers_.add_prompt_logprobs(owner.answer, *std::move(result.logprobs), now_us)
                          : commit_token(row, std::move(result), now_us)) {
    finish(owner.sequence);
  }
}

// Returns true if the answer has ended.
bool StepLoop::commit_token(std::size_t row, SampledToken&& result, std::int64_t now_us) {
  const RowOwner& owner = rows_[row];
  if (owner.drafts == 0) {
    scheduler_.commit(owner.sequence, result.id);
  } else {
    scheduler_.commit_draft(owner.sequence, result.id);
  }
  if (answers_.deliver(owner.answer, std::move(result), scheduler_.output(owner.sequence), now_us))
    return true;
  if (!rows_.is_last(row)) return false;
  if (follow_grammar(owner, now_us)) return true;
  if (!answers_[owner.answer].mask_under_way) drafting_.want(owner);
  return false;
}

bool StepLoop::reports(const RowOwner& owner) const {
  const SamplingParams& params = answers_[owner.answer].params();
  return owner.prompt || params.logprobs.output || !params.logprobs.token_ids.empty();
}

// Appends the tokens that the grammar forces, which the next step computes together. Then starts to compute
// the next mask. On an asynchronous executor, every token is sampled instead. Returns true if the answer has
// ended.
bool StepLoop::follow_grammar(const RowOwner& owner, std::int64_t now_us) {
  Answer& answer = answers_[owner.answer];
  GuidedText* const rule = answer.rule();
  if (!rule) return false;
  const bool jumps = !executor_.asynchronous() && answer.takes_forced_tokens();
  if (jumps && append(owner.sequence, owner.answer, rule->try_jump(), now_us)) return true;
  guidance_.mask_is_ready(owner.sequence, answer);
  return false;
}

// Appends tokens that were not sampled. Returns true if the answer has ended.
bool StepLoop::append(SequenceId sequence, AnswerIndex answer, std::span<const TokenId> tokens,
                      std::int64_t now_us) {
  for (const TokenId token : tokens) {
    scheduler_.append(sequence, token);
    if (answers_.deliver(answer, {token, {}}, scheduler_.output(sequence), now_us)) return true;
  }
  return false;
}

void StepLoop::resume(SequenceId sequence) {
  const Sequence* parked = guidance_.take_back(sequence);
  if (parked == nullptr) return;
  const AnswerIndex answer = parked->spec.tag;
  if (append(sequence, answer, answers_[answer].guided->jump(), now_us())) {
    finish(sequence);
  } else {
    scheduler_.resume(sequence);
  }
  answers_.hand_over();
}

bool StepLoop::finish(SequenceId sequence) {
  const Sequence* ended = scheduler_.find(sequence);
  if (ended == nullptr) return false;
  drafting_.end(*ended, sequence);
  return scheduler_.finish(sequence);
}

void StepLoop::fail_broken(const RowOwner& owner, std::int64_t now_us) {
  if (finish(owner.sequence))
    answers_.fail(owner.answer,
                  {ErrorCode::internal,
                   "no token could be chosen, because the logits are not finite or all tokens are banned",
                   {}},
                  now_us);
}

bool StepLoop::uses_adapter(int slot) const {
  return std::ranges::any_of(
      launched_, [slot](const Launched& step) { return std::ranges::count(step.batch.adapters, slot) > 0; });
}

}  // namespace octavo
