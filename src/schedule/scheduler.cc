#include "schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace octavo {

Result<std::unique_ptr<Scheduler>> Scheduler::create(SchedulerOptions options) {
  TRY_VOID(validate(options));
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(options)));
}

Scheduler::Scheduler(SchedulerOptions options)
    : options_(std::move(options)),
      hasher_(options_.prefix_hash, options_.block_size),
      cache_(options_.num_blocks, options_.block_size, options_.groups),
      states_(options_.max_num_seqs + options_.draft_states),
      ahead_max_(tokens_ahead_max(options_)),
      watermark_blocks_(static_cast<int>(options_.watermark * options_.num_blocks)),
      sequences_(static_cast<std::size_t>(options_.max_sequences)) {
  if (options_.saved_states > 0) cache_.saved_states.emplace(options_.max_num_seqs + options_.draft_states, options_.saved_states);
  unused_.reserve(sequences_.size());
  for (auto s = static_cast<Slot>(sequences_.size()); s-- > 0;) unused_.push_back(s);
  const auto seqs = static_cast<std::size_t>(options_.max_num_seqs);
  running_.reserve(seqs);
  frontier_.reserve(seqs);
  waiting_.reserve(sequences_.size());
  const auto depth = static_cast<std::size_t>(options_.max_steps_in_flight);
  in_flight_.steps.reserve(depth);
  in_flight_.spare.resize(depth);
  for (Flight& flight : in_flight_.spare) flight.sequences.reserve(seqs);
  in_flight_.blocks.reserve(static_cast<std::size_t>(options_.num_blocks));
  holds_.of_block.assign(static_cast<std::size_t>(options_.num_blocks), 0);
  given_up_.reserve(static_cast<std::size_t>(options_.num_blocks));
  const auto blocks = static_cast<std::size_t>(cache_.blocks_for(options_.max_model_len));
  match_.chain.reserve(blocks);
  match_.tables.resize(cache_.groups.size());
  for (auto& table : match_.tables) table.reserve(blocks);
}

SequenceId Scheduler::id(Slot slot) const {
  return SequenceId{(std::uint64_t{at(slot).generation} << 32) | slot};
}

const Sequence* Scheduler::find(SequenceId sequence) const {
  const Slot s = slot(sequence);
  if (s >= sequences_.size() || at(s).state == Sequence::State::unused || id(s) != sequence) return nullptr;
  return &at(s);
}

Sequence* Scheduler::live(SequenceId sequence) {
  return const_cast<Sequence*>(std::as_const(*this).find(sequence));
}

bool Scheduler::in_flight(const Sequence& s) const {
  return !in_flight_.steps.empty() && s.last_step >= in_flight_.steps.front().step;
}

std::span<const TokenId> Scheduler::output(SequenceId sequence) const {
  const Sequence* s = find(sequence);
  CHECK(s != nullptr);
  return std::span(s->tokens).subspan(static_cast<std::size_t>(s->prompt_tokens));
}

Result<> Scheduler::fits(std::size_t prompt_tokens, int max_total_tokens) const {
  const auto prompt = static_cast<std::int64_t>(prompt_tokens);
  const int limit = options_.max_model_len;
  if (prompt == 0) return invalid("prompt", "the prompt is empty, but needs at least 1 token");
  if (prompt >= limit)
    return invalid(
        "prompt",
        "the prompt has {} tokens, but the context of {} tokens allows at most {}: shorten the prompt",
        prompt, limit, limit - 1);
  if (max_total_tokens <= prompt || max_total_tokens > limit)
    return invalid("max_tokens", "prompt and answer have {} tokens, but must be from {} to {}",
                   max_total_tokens, prompt + 1, limit);
  // max_total_tokens - 1, because the last token of a sequence is never computed.
  if (const int blocks = cache_.peak_blocks(max_total_tokens - 1, ahead_max_); blocks > cache_.pool.total())
    return invalid("max_tokens", "{} tokens of prompt and answer need {} cache blocks, but only {} exist",
                   max_total_tokens, blocks, cache_.pool.total());
  return {};
}

Result<SequenceId> Scheduler::add(const SequenceSpec& spec) {
  TRY_VOID(fits(spec.prompt.size(), spec.max_total_tokens));
  if (spec.prompt.size() + spec.output.size() >= static_cast<std::size_t>(spec.max_total_tokens))
    return invalid("answers_so_far", "{} tokens already reach max_tokens, so no token is left to generate",
                   spec.output.size());
  if (unused_.empty())
    return failure(ErrorCode::resource_exhausted, "all {} slots for sequences are in use",
                   options_.max_sequences);

  // Allocates all memory before it changes the scheduler, so that a failed allocation changes nothing.
  Sequence s;
  s.state = Sequence::State::waiting;
  s.spec = spec;
  s.spec.prompt = s.spec.output = {};
  s.prompt_tokens = static_cast<int>(spec.prompt.size());
  s.tokens.reserve(static_cast<std::size_t>(spec.max_total_tokens));
  s.tokens.assign(spec.prompt.begin(), spec.prompt.end());
  s.tokens.insert(s.tokens.end(), spec.output.begin(), spec.output.end());
  s.drafts.tokens.reserve(static_cast<std::size_t>(options_.max_draft_tokens));
  if (options_.draft_states > 0)
    s.recurrent.drafts.reserve(static_cast<std::size_t>(options_.max_draft_tokens) + 1);
  s.blocks = SequenceBlocks(cache_, spec.max_total_tokens);
  if (options_.enable_prefix_caching) {
    s.keys.reserve(static_cast<std::size_t>(spec.max_total_tokens / options_.block_size));
    hasher_.extend(s.tokens, s.spec.identity, s.keys, s.spec.extras);
  }

  const Slot slot = unused_.back();
  unused_.pop_back();
  s.generation = at(slot).generation + 1;
  s.arrival = ++last_arrival_;
  totals_.sequence_bytes += s.bytes();
  at(slot) = std::move(s);
  enqueue(slot);
  return id(slot);
}

bool Scheduler::before(Slot a, Slot b) const {
  if (options_.policy == Policy::priority && at(a).spec.priority != at(b).spec.priority)
    return at(a).spec.priority < at(b).spec.priority;
  return at(a).arrival < at(b).arrival;
}

// A preempted sequence is older than all waiting sequences, so it returns to its old position in the queue.
// Under longest_prefix, the plan sorts the queue, so a preempted sequence only needs to precede new ones.
void Scheduler::enqueue(Slot slot) {
  const auto next =
      options_.policy == Policy::longest_prefix
          ? (at(slot).counts.starts_over > 0 ? waiting_.begin() : waiting_.end())
          : std::ranges::upper_bound(waiting_, slot, [&](Slot a, Slot b) { return before(a, b); });
  waiting_.insert(next, slot);
}

// Steps in flight may still access the blocks. Such blocks return to the pool when the last of these steps
// is collected.
void Scheduler::give_up_memory(Sequence& s) {
  if (s.recurrent.slot != kNoState) states_.give_back(std::exchange(s.recurrent.slot, kNoState));
  give_back_draft_states(s);
  given_up_.clear();
  s.blocks.give_up(given_up_);
  for (const BlockId block : given_up_) {
    if (in_flight(s)) {
      in_flight_.blocks.push_back({s.last_step, block});
    } else {
      cache_.pool.release(block);
    }
  }
}

void Scheduler::give_back_draft_states(Sequence& s) {
  for (const int slot : s.recurrent.drafts) states_.give_back(slot);
  s.recurrent.drafts.clear();
}

void Scheduler::next_draft_state(Sequence& s) {
  s.recurrent.slot = s.recurrent.drafts.front();
  s.recurrent.drafts.erase(s.recurrent.drafts.begin());
}

void Scheduler::collect(StepNumber step) {
  CHECK(!in_flight_.steps.empty() && in_flight_.steps.front().step == step,
        "step {} is not the oldest in flight", step);
  Flight& flight = in_flight_.steps.front();
  for (const Launched& launched : flight.sequences) {
    if (launched.state_from != kNoState) cache_.saved_states->unpin(launched.state_from);
    Sequence* s = live(launched.sequence);
    if (s == nullptr || s->counts.starts_over != launched.starts_over) {
      if (launched.state_to != kNoState) cache_.saved_states->give_back(launched.state_to);
      continue;
    }
    CHECK(static_cast<int>(s->tokens.size()) >= launched.end,
          "step {} collected before the commits of the one before", step);
    s->computed = launched.end;
    // The condition is false for a step before the one that computes the draft tokens.
    if (!s->recurrent.drafts.empty() && launched.end == s->planned) {
      s->recurrent.drafts.push_back(s->recurrent.slot);
      next_draft_state(*s);
    }
    if (options_.enable_prefix_caching) {
      hasher_.extend(std::span(s->tokens).first(static_cast<std::size_t>(s->computed)), s->spec.identity,
                     s->keys, s->spec.extras);
      s->blocks.publish(s->computed, s->history());
      if (launched.state_to != kNoState) cache_.saved_states->keep(launched.state_to, s->blocks.tip());
    }
    s->blocks.leave_window(s->computed);
  }
  flight.sequences.clear();
  in_flight_.spare.push_back(std::move(flight));
  in_flight_.steps.erase(in_flight_.steps.begin());

  std::erase_if(in_flight_.blocks, [&](const DeferredBlock& d) {
    if (d.step > step) return false;
    cache_.pool.release(d.block);
    return true;
  });
}

bool Scheduler::commit(SequenceId sequence, TokenId token) {
  Sequence* s = live(sequence);
  if (s == nullptr) return false;
  CHECK(s->sampling > 0, "sequence {} has no token on the way", static_cast<std::uint64_t>(sequence));
  --s->sampling;
  s->tokens.push_back(token);
  s->drafts.tokens.clear();
  s->drafts.in_flight = false;
  return true;
}

void Scheduler::append(SequenceId sequence, TokenId token) {
  Sequence* s = live(sequence);
  CHECK(s != nullptr && s->sampling == 0, "sequence {} has tokens on the way",
        static_cast<std::uint64_t>(sequence));
  s->tokens.push_back(token);
}

void Scheduler::draft(SequenceId sequence, std::span<const TokenId> tokens) {
  Sequence* s = live(sequence);
  CHECK(s != nullptr && s->sampling == 0, "sequence {} has tokens on the way",
        static_cast<std::uint64_t>(sequence));
  CHECK(static_cast<int>(tokens.size()) <= options_.max_draft_tokens);
  s->drafts.tokens.assign(tokens.begin(), tokens.end());
}

void Scheduler::commit_draft(SequenceId sequence, TokenId token) {
  Sequence* s = live(sequence);
  CHECK(s != nullptr && s->sampling == 0, "sequence {} has tokens on the way",
        static_cast<std::uint64_t>(sequence));
  // A sequence that was preempted since the step was planned has no computed positions.
  if (s->state == Sequence::State::running) {
    CHECK(s->computed == s->planned && s->planned == s->length() - 1, "computed {}, planned {}, length {}",
          s->computed, s->planned, s->length());
    ++s->planned;
    ++s->computed;
    if (!s->recurrent.drafts.empty()) {
      states_.give_back(s->recurrent.slot);
      next_draft_state(*s);
    }
  }
  s->tokens.push_back(token);
}

bool Scheduler::finish(SequenceId sequence) {
  Sequence* s = live(sequence);
  if (s == nullptr) return false;
  std::erase(s->state == Sequence::State::running ? running_ : waiting_, slot(sequence));
  give_up_memory(*s);
  totals_.sequence_bytes -= s->bytes();
  const std::uint32_t generation = s->generation;
  *s = Sequence{};  // also frees the memory of the sequence
  s->generation = generation;
  unused_.push_back(slot(sequence));
  return true;
}

void Scheduler::reset_prefix_cache() {
  cache_.pool.reset();
  if (cache_.saved_states) cache_.saved_states->reset();
}

SchedulerStats Scheduler::stats() const {
  const BlockPool& pool = cache_.pool;
  SchedulerStats stats = totals_;
  stats.running = static_cast<int>(running_.size());
  stats.waiting = static_cast<int>(waiting_.size());
  stats.blocks_total = pool.total();
  stats.blocks_used = pool.used();
  stats.blocks_cached = pool.cached();
  stats.blocks_free = pool.free() - pool.cached();
  return stats;
}

}  // namespace octavo
