#include "engine/loop/step.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/out_of_memory.h"
#include "timing/step_timing.h"

namespace octavo {
namespace {

constexpr TokenId kNoDraft = -1;
constexpr double kNewest = 0.2;  // share of the last step in a running mean

}  // namespace

Result<bool> StepLoop::run() {
  if (executor_.stages() > 1) return run_in_stages();
  scheduler_.plan(plan_);
  if (plan_.empty() && flying_ == 0) return false;

  const std::int64_t began_us = now_us();
  StepRecord record = record_of_plan();
  if (!plan_.empty()) {
    TRY_VOID(launch(record));
    if (executor_.pools()) {
      TRY_VOID(commit_pooled(record, began_us));
      return true;
    }
  }
  if (flying_ != 0) TRY_VOID(commit_flying());  // step N - 1, while N runs
  if (plan_.empty()) return true;

  choose_rows();
  TRY_VOID(executor_.sample(row_tokens_, rows_));
  flying_ = plan_.step;
  flying_record_ = record;
  flying_began_us_ = began_us;
  if (!executor_.asynchronous()) TRY_VOID(commit_flying());
  return true;
}

// Begins the forward pass of the plan.
Result<> StepLoop::launch(StepRecord& record) {
  const std::int64_t began_us = now_us();
  step_tokens_.observe(plan_.tokens);
  note_scheduled();
  pack(plan_, scheduler_.cache().group_count(), scheduler_.options().block_size, batch_);
  batch_.adapters.clear();
  for (const PlannedSequence& s : plan_.sequences) batch_.adapters.push_back(answers_[s.tag].adapter);
  place_images();
  TRY_VOID(executor_.forward(batch_));
  record.forward_us = now_us() - began_us;
  return {};
}

// Launches steps until every stage has one, then ends the oldest. What a step plans is not sampled by another one
// that is still on its way.
Result<bool> StepLoop::run_in_stages() {
  const std::int64_t began_us = now_us();
  scheduler_.plan(plan_);
  if (!plan_.empty()) {
    StepRecord record = record_of_plan();
    TRY_VOID(launch(record));
    launched_.push_back({plan_, batch_, record, began_us});
    if (std::ssize(launched_) < executor_.stages()) return true;
  }
  if (launched_.empty()) return false;
  Launched& oldest = launched_.front();
  plan_ = std::move(oldest.plan);
  batch_ = std::move(oldest.batch);
  flying_record_ = oldest.record;
  flying_began_us_ = oldest.began_us;
  launched_.pop_front();
  choose_rows();
  TRY_VOID(executor_.sample(row_tokens_, rows_));
  flying_ = plan_.step;
  TRY_VOID(commit_flying());
  return true;
}

bool StepLoop::uses_adapter(int place) const {
  return std::ranges::any_of(launched_, [place](const Launched& step) {
    return std::ranges::count(step.batch.adapters, place) > 0;
  });
}

void StepLoop::place_images() {
  batch_.images.clear();
  batch_.sources.clear();
  for (std::vector<std::int32_t>& axis : batch_.axes) axis.clear();
  const bool grids = std::ranges::any_of(plan_.sequences, [this](const PlannedSequence& s) {
    const std::vector<MediaPart>& images = answers_[s.tag].accepted->request.media;
    return !images.empty() && images[0].tokens > 0 && images[0].columns > 0 && !images[0].row_breaks;
  });
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    const PlannedSequence& s = plan_.sequences[i];
    const Accepted& accepted = *answers_[s.tag].accepted;
    if (grids) append_grid_positions(accepted.request.media, s.first, s.end() - s.first, batch_.axes);
    for (std::size_t k = 0; k < accepted.encoded.size(); ++k) {
      const MediaPart& part = accepted.request.media[k];
      if (part.tokens == 0) batch_.sources.push_back(accepted.encoded[k]->place);
      // What follows each other in the prompt: all of its rows, or those of one row of its grid.
      const int run = part.row_breaks ? part.columns : part.tokens;
      for (int row = 0, place = part.first; row < part.tokens; row += run, place += run + 1) {
        const int first = std::max(place, s.first);
        const int end = std::min(place + run, s.first + s.count);
        if (first < end)
          batch_.images.push_back({batch_.query_starts[i] + first - s.first, end - first,
                                   accepted.encoded[k]->place, row + first - place,
                                   static_cast<std::int32_t>(i)});
      }
    }
  }
}

void StepLoop::note_scheduled() {
  for (const PlannedSequence& s : plan_.sequences) {
    Answer& answer = answers_[s.tag];
    if (answer.times.scheduled_us == 0) {
      answer.times.scheduled_us = now_us();
      answer.cached_tokens = s.cached_tokens;
      answer.accepted->scheduled = true;
    }
    answer.preemptions = scheduler_.find(s.sequence)->preemptions;
  }
}

StepRecord StepLoop::record_of_plan() const {
  StepRecord record{.number = static_cast<std::int64_t>(plan_.step),
                    .sequences = static_cast<int>(plan_.sequences.size())};
  StepWork work;
  for (const PlannedSequence& s : plan_.sequences) {
    const auto prompt = static_cast<int>(answers_[s.tag].accepted->request.prompt.size());
    record.prompt_tokens += std::clamp(prompt - s.first, 0, s.count);
    work.add(s.first, s.end() - s.first);
  }
  record.answer_tokens = plan_.tokens - record.prompt_tokens;
  record.kv_tokens = work.kv_tokens;
  record.pairs = work.pairs;
  return record;
}

// Rows of sequences that ended while their forward pass ran are left out, and of those whose mask is not
// ready, which are to be computed again.
void StepLoop::choose_rows() {
  row_tokens_.clear();
  rows_.clear();
  owners_.clear();
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    const PlannedSequence& s = plan_.sequences[i];
    if (!scheduler_.contains(s.sequence)) continue;
    const int first_token = batch_.query_starts[i];
    const std::size_t rows_before = rows_.size();
    if (answers_[s.tag].params().prompt_logprobs) add_prompt_rows(s, first_token);
    if (!s.samples) continue;
    if (!mask_is_ready(s.sequence, answers_[s.tag])) {
      scheduler_.retract(s.sequence);
      continue;
    }
    const Result<bool> added = add_answer_rows(s, first_token + s.count - 1);
    if (added.value_or(false)) continue;
    drop_rows_from(rows_before);  // they point into the answer, which ends here
    finish(s.sequence);
    added ? answers_.stop(s.tag, now_us()) : answers_.fail(s.tag, added.error(), now_us());
  }
}

void StepLoop::drop_rows_from(std::size_t row) {
  const auto from = static_cast<std::ptrdiff_t>(row);
  row_tokens_.erase(row_tokens_.begin() + from, row_tokens_.end());
  rows_.erase(rows_.begin() + from, rows_.end());
  owners_.erase(owners_.begin() + from, owners_.end());
}

// The logits of position p tell about the prompt's token at p + 1. After a preemption, positions come again.
void StepLoop::add_prompt_rows(const PlannedSequence& s, int first_token) {
  Answer& answer = answers_[s.tag];
  const std::vector<TokenId>& prompt = answer.accepted->request.prompt;
  const int end = std::min(s.first + s.count, static_cast<int>(prompt.size()) - 1);
  for (int p = std::max(s.first, answer.prompt_logprobs_count); p < end; ++p) {
    owners_.push_back({.sequence = s.sequence, .answer = s.tag, .prompt = true});
    SampleRow row;
    row.forced = prompt[static_cast<std::size_t>(p) + 1];
    add_row(s, first_token + p - s.first, row);
  }
  answer.prompt_logprobs_count = std::max(answer.prompt_logprobs_count, end);
}

// One row behind the last known token and one behind each draft token. A grammar follows the draft tokens for
// the masks, as far as it allows them and at once, and goes back. False: nothing is left to follow, and the
// text may end here. Error: nothing is left, and it may not.
Result<bool> StepLoop::add_answer_rows(const PlannedSequence& s, int last_token) {
  Answer& answer = answers_[s.tag];
  GuidedText* const rule = answer.rule();
  std::size_t followed = 0;
  for (int drafts = 0; drafts <= static_cast<int>(s.drafts.size()); ++drafts) {
    const TokenId draft_token = drafts == 0 ? kNoDraft : s.drafts[static_cast<std::size_t>(drafts) - 1];
    SampleRow row;
    row.drafts = drafts;
    if (rule && drafts == 0) {
      TRY(row.mask, rule->mask());
    } else if (rule) {
      if (!follow_draft(*rule, draft_token, row)) break;
      followed = static_cast<std::size_t>(drafts);
    } else if (const auto forced = answer.thinking.forced()) {
      row.mask = mask_of(answer, *forced);
    }
    if (drafts == 0 && answer.sampling.excludes_all(row.mask, scheduler_.output(s.sequence), bans_)) {
      if (rule && rule->matcher().can_terminate()) return false;  // under min_tokens
      return invalid("",
                     "no token is left: allowed_token_ids, bad_words, min_tokens and the structured output "
                     "of this request exclude each other after {} tokens",
                     scheduler_.output(s.sequence).size());
    }
    owners_.push_back({s.sequence, s.tag, false, drafts, draft_token});
    add_row(s, last_token + drafts, row);
  }
  if (rule) rule->matcher().rollback(followed);
  draft_counters_.drafts += !s.drafts.empty();
  draft_counters_.tokens += static_cast<std::int64_t>(s.drafts.size());
  return true;
}

// Of the row that comes next, for the caller to fill.
std::span<std::int32_t> StepLoop::next_mask(std::size_t words) {
  masks_.resize(std::max(masks_.size(), rows_.size() + 1));
  masks_[rows_.size()].resize(words);
  return masks_[rows_.size()];
}

// Only this token may follow.
std::span<const std::int32_t> StepLoop::mask_of(const Answer& answer, TokenId token) {
  const std::span<std::int32_t> words =
      next_mask((static_cast<std::size_t>(answer.sampling.vocab_size()) + 31) / 32);
  std::ranges::fill(words, 0);
  words[static_cast<std::size_t>(token) / 32] = static_cast<std::int32_t>(std::uint32_t{1} << token % 32);
  return words;
}

// Takes the draft token and says what may follow it. False, and nothing was taken: it is not allowed, or ends
// the text, or that is not known at once.
bool StepLoop::follow_draft(GuidedText& text, TokenId draft_token, SampleRow& row) {
  grammar::Matcher& rule = text.matcher();
  if (!rule.try_accept(draft_token).value_or(false)) return false;
  const std::span<std::int32_t> words = next_mask(text.mask_words());
  const std::int64_t began = now_ns();
  const std::optional<Result<>> filled = rule.is_terminated() ? std::nullopt : rule.try_fill_mask(words);
  mask_counters_.nanoseconds += now_ns() - began;
  if (!filled || !*filled) {
    rule.rollback(1);
    return false;
  }
  ++mask_counters_.filled;
  row.mask = words;
  return true;
}

// Which tokens the grammar of an answer lets follow: known, or found out at once. Otherwise the mask worker
// is at it, or is from now on, and the sequence is parked.
bool StepLoop::mask_is_ready(SequenceId sequence, Answer& answer) {
  GuidedText* const rule = answer.rule();
  if (answer.mask_under_way || !rule) return !answer.mask_under_way;
  if (rule->ready()) return true;
  const std::int64_t began = now_ns();
  const bool filled = rule->try_fill();
  mask_counters_.nanoseconds += now_ns() - began;
  ++mask_counters_.filled;
  if (filled) return true;
  ++mask_counters_.deferred;
  ++masks_under_way_;
  answer.mask_under_way = true;
  scheduler_.park(sequence);
  mask_worker_.post({sequence, answer.guided});
  return false;
}

void StepLoop::resume(SequenceId sequence) {
  --masks_under_way_;
  const Sequence* parked = scheduler_.find(sequence);
  if (parked == nullptr) return;  // it has ended meanwhile
  const AnswerIndex index = parked->tag;
  answers_[index].mask_under_way = false;
  if (append(sequence, index, answers_[index].guided->jump(), now_us())) {
    finish(sequence);
  } else {
    scheduler_.resume(sequence);
  }
  answers_.hand_over();
}

void StepLoop::add_row(const PlannedSequence& s, int token, const SampleRow& row) {
  row_tokens_.push_back(token);
  rows_.push_back(row);
  rows_.back().sequence = &answers_[s.tag].sampling;
  rows_.back().output = scheduler_.output(s.sequence);
}

// Appends what the grammar forces, to be computed all at once by the next step, and has the mask of what
// follows made. True: the answer has ended. Where a sampled token would be judged by more than the grammar,
// or the next step is already on its way, every token is sampled.
bool StepLoop::follow_grammar(const RowOwner& owner, std::int64_t now_us) {
  Answer& answer = answers_[owner.answer];
  GuidedText* const rule = answer.rule();
  if (!rule) return false;
  const bool jumps = !executor_.asynchronous() && !answer.params().logprobs && !answer.sampling.restricts();
  if (jumps && append(owner.sequence, owner.answer, rule->try_jump(), now_us)) return true;
  mask_is_ready(owner.sequence, answer);
  return false;
}

// Tokens that come next without being sampled. True: the answer has ended with one of them.
bool StepLoop::append(SequenceId sequence, AnswerIndex answer, std::span<const TokenId> tokens,
                   std::int64_t now_us) {
  for (const TokenId token : tokens) {
    scheduler_.append(sequence, token);
    if (answers_.deliver(answer, {token, {}}, scheduler_.output(sequence), now_us)) return true;
  }
  return false;
}

bool StepLoop::finish(SequenceId sequence) {
  const Sequence* ended = scheduler_.find(sequence);
  if (ended == nullptr) return false;
  if (proposer_ != nullptr)
    proposer_->end(static_cast<std::uint64_t>(sequence), ended->tokens, ended->prompt_tokens);
  return scheduler_.finish(sequence);
}

// Whether a row behind draft tokens can be sampled before they are accepted.
bool StepLoop::takes_drafts(const Answer& answer) {
  return !answer.sampling.follows_history() && !answer.thinking.counts();
}

void StepLoop::want_drafts(const RowOwner& owner) {
  if (proposer_ == nullptr || executor_.asynchronous()) return;
  if (takes_drafts(answers_[owner.answer])) drafting_.push_back(owner);
}

// What of the step stays, while its sequences are still there.
void StepLoop::note_texts(std::span<const SampledToken> results) {
  texts_.clear();
  const std::vector<CacheGroup>& groups = scheduler_.options().groups;
  const auto keeps_all = std::ranges::find(groups, 0, &CacheGroup::window);
  const Batch::Group& group =
      batch_.groups[keeps_all != groups.end() ? static_cast<std::size_t>(keeps_all - groups.begin()) : 0];
  const int sequences = static_cast<int>(plan_.sequences.size());
  std::size_t row = 0;
  for (std::size_t i = 0; i < plan_.sequences.size(); ++i) {
    const PlannedSequence& s = plan_.sequences[i];
    int drafts = 0;
    TokenId next = kNoDraft;
    for (; row < owners_.size() && owners_[row].sequence == s.sequence; ++row) {
      if (owners_[row].prompt || owners_[row].dropped) continue;
      drafts = owners_[row].drafts;
      next = results[row].id;
    }
    const Sequence* sequence = scheduler_.find(s.sequence);
    if (sequence == nullptr) continue;
    if (!s.samples) next = sequence->tokens[static_cast<std::size_t>(s.end())];
    if (next < 0) continue;  // broken numbers
    const Answer& answer = answers_[s.tag];
    const auto first = static_cast<std::size_t>(batch_.query_starts[i]);
    const auto count = static_cast<std::size_t>(s.count + drafts);
    const auto stride = static_cast<std::size_t>(group.table_stride);
    texts_.push_back({.sequence = static_cast<std::uint64_t>(s.sequence),
                      .row = batch_.query_starts[i],
                      .first = s.first,
                      .tokens = std::span(batch_.ids).subspan(first, count),
                      .next = next,
                      .slots = std::span(group.slots).subspan(first, count),
                      .blocks = std::span(group.tables).subspan(i * stride, stride),
                      .wanted = takes_drafts(answer) && draft_policy_.may_want(sequences, answer.acceptance)});
  }
}

// Draft tokens, for all who want some.
Result<> StepLoop::propose() {
  if (proposer_ == nullptr || executor_.asynchronous()) return {};
  const std::int64_t began_ns = now_ns();
  TRY_VOID(proposer_->read(texts_));
  std::int64_t first_ns = 0;
  if (!drafting_.empty()) {
    TRY(first_ns, draft_texts());
  }
  const std::int64_t ended_ns = now_ns();
  if (first_ns == 0) first_ns = ended_ns;
  draft_policy_.note_proposed(first_ns - began_ns, ended_ns - first_ns);
  return {};
}

// Returns what propose() does.
Result<std::int64_t> StepLoop::draft_texts() {
  drafts_.resize(std::max(drafts_.size(), drafting_.size()));
  const std::span<Draft> drafts = std::span(drafts_).first(drafting_.size());
  const int sequences = static_cast<int>(plan_.sequences.size());
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    Answer& answer = answers_[drafting_[i].answer];
    const Sequence& s = *scheduler_.find(drafting_[i].sequence);
    Draft& draft = drafts[i];
    draft.sequence = static_cast<std::uint64_t>(drafting_[i].sequence);
    draft.text = s.tokens;
    draft.prompt_tokens = s.prompt_tokens;
    draft.sampling = &answer.params();
    draft.seed = answer.sampling.seed();
    draft.identity = s.identity;
    draft.isolated = !answer.accepted->request.identity.salt.empty();
    // The answer's last token is never computed.
    const int room = std::max(0, s.max_total_tokens - 1 - s.length());
    draft.most = std::min(
        {draft_policy_.count(sequences, answer.acceptance), scheduler_.options().max_draft_tokens, room});
  }
  TRY(const std::int64_t first_ns, proposer_->propose(drafts));
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    keep_allowed(answers_[drafting_[i].answer], drafts[i].tokens);
    scheduler_.draft(drafting_[i].sequence, drafts[i].tokens);
  }
  drafting_.clear();
  return first_ns;
}

// Cuts draft tokens where the answer's grammar does not allow them, or cannot say at once, and behind what
// changes its masks.
void StepLoop::keep_allowed(Answer& answer, std::vector<TokenId>& draft_tokens) {
  const auto cut_at = [&](TokenId token) {
    draft_tokens.erase(std::ranges::find(draft_tokens, token), draft_tokens.end());
  };
  if (const auto begin = answer.thinking.begin()) cut_at(*begin);
  if (answer.grammar_waits) {
    cut_at(*answer.accepted->request.grammar_after);
  } else if (answer.guided) {
    grammar::Matcher& rule = answer.guided->matcher();
    std::size_t allowed = 0;
    while (allowed < draft_tokens.size() && rule.try_accept(draft_tokens[allowed]).value_or(false)) ++allowed;
    rule.rollback(allowed);
    draft_tokens.resize(allowed);
  }
}

Result<> StepLoop::commit_flying() {
  TRY(const std::span<SampledToken> results, executor_.collect());
  CHECK(results.size() == owners_.size(), "{} results for {} rows", results.size(), owners_.size());
  const std::int64_t now = now_us();
  note_computed(flying_, flying_record_, flying_began_us_, now);
  drop_rows(results);
  if (proposer_ != nullptr && !executor_.asynchronous()) note_texts(results);
  // Broken numbers end their own request, before collect() lets others share the blocks they stand in.
  for (std::size_t i = 0; i < results.size(); ++i)
    if (owners_[i].drafts == 0 && results[i].id < 0) fail_broken(owners_[i], now);
  scheduler_.collect(flying_);
  flying_ = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RowOwner& owner = owners_[i];
    if (owner.dropped || !scheduler_.contains(owner.sequence)) continue;
    if (reports(owner) && results[i].id >= 0 && !results[i].logprobs) {
      finish(owner.sequence);
      answers_.fail(owner.answer, out_of_memory(), now);
    } else if (owner.prompt) {
      if (!answers_.add_prompt_logprobs(owner.answer, *std::move(results[i].logprobs), now))
        finish(owner.sequence);
    } else if (results[i].id < 0) {
      fail_broken(owner, now);  // behind an accepted draft token
    } else if (commit_row(i, std::move(results[i]), now)) {
      finish(owner.sequence);
    }
  }
  answers_.hand_over();
  return propose();
}

void StepLoop::note_computed(StepNumber step, StepRecord record, std::int64_t began_us, std::int64_t now_us) {
  record.began_us = std::max(began_us, computed_us_);
  record.microseconds = now_us - record.began_us;
  recent_steps_[step % recent_steps_.size()] = record;
  computed_us_ = now_us;
  draft_policy_.note_step(record.prompt_tokens == 0 ? record.answer_tokens : 0, record.microseconds * 1000);
  if (record.prompt_tokens <= record.answer_tokens) return;
  const double seconds =
      static_cast<double>(record.microseconds) * 1e-6 / (record.prompt_tokens + record.answer_tokens);
  prompt_token_seconds_ = prompt_token_seconds_ == 0
                              ? seconds
                              : prompt_token_seconds_ + kNewest * (seconds - prompt_token_seconds_);
}

// Prompts are computed whole: each ends with the numbers that the model makes of it.
Result<> StepLoop::commit_pooled(const StepRecord& record, std::int64_t began_us) {
  const auto task_of = [&](const PlannedSequence& s) { return answers_[s.tag].accepted->request.task; };
  pooled_starts_.assign(1, 0);
  pooled_heads_.clear();
  std::int32_t end = 0;
  for (const PlannedSequence& s : plan_.sequences) {
    end += s.count;
    while (is_of_tokens(task_of(s)) && pooled_starts_.back() + 1 < end)
      pooled_starts_.push_back(pooled_starts_.back() + 1);
    pooled_starts_.push_back(end);
    pooled_heads_.resize(pooled_starts_.size() - 1, static_cast<std::uint8_t>(info_.head_for(task_of(s))));
  }
  TRY(const std::span<const float> pooled, executor_.pool(pooled_starts_, pooled_heads_));
  const std::int64_t now = now_us();
  note_computed(plan_.step, record, began_us, now);
  std::size_t begin = 0;
  for (const PlannedSequence& s : plan_.sequences) {
    const Task task = task_of(s);
    CHECK(s.samples && (s.first == 0 || !is_of_tokens(task)), "tokens [{}, {}) of a prompt that is pooled",
          s.first, s.end());
    const int numbers = info_.size_for(task) * (is_of_tokens(task) ? s.count : 1);
    const std::span<const float> own = pooled.subspan(begin, static_cast<std::size_t>(numbers));
    begin += own.size();
    const bool finite = std::ranges::all_of(own, [](float x) { return std::isfinite(x); });
    if (finite) {
      answers_.deliver_pooled(s.tag, own, now);
      continue;
    }
    scheduler_.finish(s.sequence);  // before others may share what it has cached
    answers_.fail(s.tag, {ErrorCode::internal, "the model's numbers are not finite", {}}, now);
  }
  scheduler_.collect(plan_.step);
  for (const PlannedSequence& s : plan_.sequences) scheduler_.finish(s.sequence);
  return {};
}

void StepLoop::fail_broken(const RowOwner& owner, std::int64_t now_us) {
  if (finish(owner.sequence))
    answers_.fail(
        owner.answer,
        {ErrorCode::internal, "no token could be chosen: the logits are not numbers, or all are banned", {}},
        now_us);
}

// Whether the row's log-probabilities are asked for.
bool StepLoop::reports(const RowOwner& owner) const {
  const SamplingParams& params = answers_[owner.answer].params();
  return owner.prompt || params.logprobs || !params.logprob_token_ids.empty();
}

void StepLoop::drop_rows(std::span<const SampledToken> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    RowOwner& owner = owners_[i];
    if (owner.drafts == 0) continue;
    owner.dropped = owners_[i - 1].dropped || results[i - 1].id != owner.last_draft;
    if (!owners_[i - 1].dropped) draft_policy_.note(answers_[owner.answer].acceptance, !owner.dropped);
    if (!owner.dropped) ++draft_counters_.accepted[static_cast<std::size_t>(owner.drafts) - 1];
  }
}

// True: the answer has ended.
bool StepLoop::commit_row(std::size_t row, SampledToken&& result, std::int64_t now_us) {
  const RowOwner& owner = owners_[row];
  if (owner.drafts == 0) {
    scheduler_.commit(owner.sequence, result.id);
  } else {
    scheduler_.commit_draft(owner.sequence, result.id);
  }
  if (answers_.deliver(owner.answer, std::move(result), scheduler_.output(owner.sequence), now_us))
    return true;
  const bool last = row + 1 == owners_.size() || owners_[row + 1].drafts == 0 || owners_[row + 1].dropped;
  if (!last) return false;
  if (follow_grammar(owner, now_us)) return true;
  if (!answers_[owner.answer].mask_under_way) want_drafts(owner);
  return false;
}

}  // namespace octavo
