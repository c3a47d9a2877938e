// Plans the steps of the scheduler.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace octavo {
namespace {

// Maximum number of waiting sequences that one plan examines without admitting them. Each examination looks
// up the prefix cache, which takes time.
constexpr int kSharersPassedMax = 64;
constexpr std::size_t kReorderedMax = 128;

}  // namespace

void Scheduler::plan(StepPlan& plan) {
  CHECK(!in_flight_.spare.empty(), "{} steps are in flight", in_flight_.steps.size());
  plan.step = 0;
  plan.tokens = 0;
  plan.sequences.clear();
  plan.preempted.clear();

  budget_ = options_.max_num_batched_tokens;
  promised_ = 0;
  for (const Slot slot : running_) {
    promised_ += promise(at(slot));
    if (!at(slot).drafts.in_flight) give_back_draft_states(at(slot));
  }
  // Draft tokens use only spare blocks. So the plan takes blocks from the reserve until there is a spare
  // block for each running sequence.
  if (holds_.reserve != nullptr) reclaim(static_cast<int>(running_.size()) - spare());

  plan_decodes(plan);
  plan_prefills(plan);
  if (plan.preempted.empty()) plan_waiting(plan);
  plan_drafts(plan);
  if (plan.empty()) return;

  plan.step = ++in_flight_.last_step;
  Flight& flight = in_flight_.steps.emplace_back(std::move(in_flight_.spare.back()));
  in_flight_.spare.pop_back();
  flight.step = plan.step;
  for (const PlannedSequence& p : plan.sequences)
    flight.sequences.push_back(
        {p.sequence, at(slot(p.sequence)).counts.starts_over, p.first + p.count, p.state_from, p.state_to});
}

// Returns the number of tokens that the next step may compute for the sequence. Returns 0 if the sequence
// is parked or complete, or if its draft tokens are in flight.
int Scheduler::tokens_wanted(const Sequence& s) const {
  if (s.parked || s.drafts.in_flight || s.length() >= s.spec.max_total_tokens) return 0;
  if (s.sampling > 0 && !options_.samples_ahead) return 0;
  const int wanted = s.length() - s.planned;
  const int threshold = options_.long_prefill_token_threshold;
  return threshold == 0 ? wanted : std::min(wanted, threshold);
}

// Returns the number of free blocks to reserve for the sequence, so that it never waits for blocks that
// were promised at admission.
int Scheduler::promise(const Sequence& s) const { return s.blocks.growth(s.promised, ahead_max_); }

int Scheduler::lent() const {
  int references = 0;
  for (int g = 0; g < cache_.group_count(); ++g)
    if (cache_.group(g).window != 0) references += cache_.pool.extra_references(g);
  return references - holds_.extra;
}

// Returns the number of free blocks that are neither promised nor lent.
int Scheduler::spare() const { return cache_.pool.free() - promised_ - lent(); }

// Plans one token for each sequence that needs exactly one token. These sequences are planned before the
// long prefills of older sequences, so that decoding continues while a prompt is computed. The budget has a
// token for each running sequence.
void Scheduler::plan_decodes(StepPlan& plan) {
  const std::size_t steps = options_.samples_ahead ? 1 : static_cast<std::size_t>(options_.max_steps_in_flight);
  const std::size_t share = (running_.size() + steps - 1) / steps;
  for (std::size_t index = 0; index < running_.size() && plan.sequences.size() < share; ++index) {
    const int wanted = tokens_wanted(at(running_[index]));
    if (wanted > 0 && make_room(index, plan) && wanted == 1) compute(running_[index], 1, plan);
  }
}

void Scheduler::plan_prefills(StepPlan& plan) {
  for (const Slot slot : running_) {
    const int wanted = tokens_wanted(at(slot));
    if (wanted <= 1) continue;
    const Sequence& s = at(slot);
    const int count = s.uncut(s.planned, to_checkpoint(s, covered(s, std::min(wanted, budget_))));
    if (count > 0) compute(slot, count, plan);
  }
}

// Ensures that there is a block for one more token of the sequence running_[index]. Uses promised blocks
// first, then spare blocks, and then preempts later sequences. Returns false if this step cannot get a
// block.
bool Scheduler::make_room(std::size_t index, StepPlan& plan) {
  Sequence& s = at(running_[index]);
  const int beyond_promise = s.blocks.missing(s.planned + 1) - promise(s);
  if (beyond_promise <= 0) return true;
  // Deferred blocks become free when the step in flight is collected.
  while (beyond_promise > spare() + static_cast<int>(in_flight_.blocks.size()) &&
         (reclaim(beyond_promise - spare()) || preempt_below(index, plan))) {
  }
  if (beyond_promise > spare()) return false;
  take_blocks(s, s.planned + 1);
  return true;
}

// Preempts the last running sequence after `index` that may be preempted. This plan does not include
// sequences after `index` yet.
bool Scheduler::preempt_below(std::size_t index, StepPlan& plan) {
  std::size_t last = running_.size() - 1;
  while (last > index && at(running_[last]).non_preemptible) --last;
  if (last == index) return false;
  const Slot slot = running_[last];
  promised_ -= promise(at(slot));
  ++totals_.preemptions;
  ++at(slot).counts.preemptions;
  start_over(slot);
  plan.preempted.push_back(id(slot));
  return true;
}

void Scheduler::start_over(Slot slot) {
  Sequence& s = at(slot);
  give_up_memory(s);
  s.state = Sequence::State::waiting;
  s.computed = s.planned = s.promised = 0;
  ++s.counts.starts_over;
  std::erase(running_, slot);
  enqueue(slot);
}

void Scheduler::retract(SequenceId sequence) {
  Sequence* s = live(sequence);
  CHECK(s != nullptr && s->state == Sequence::State::running && s->sampling == 1,
        "sequence {} has no token on the way, or more than one", static_cast<std::uint64_t>(sequence));
  s->sampling = 0;
  s->drafts.in_flight = false;
  s->drafts.tokens.clear();
  start_over(slot(sequence));
}

// Allocates the blocks for positions up to `end`. The blocks must be promised or spare.
void Scheduler::take_blocks(Sequence& s, int end) {
  promised_ -= promise(s);
  CHECK(s.blocks.reserve(end), "{} free blocks for {} tokens", cache_.pool.free(), end);
  promised_ += promise(s);
}

// Returns the number of tokens, at most `count`, for which there are promised or spare blocks.
int Scheduler::covered(const Sequence& s, int count) const {
  const int available = promise(s) + std::max(spare(), 0);
  while (count > 0 && s.blocks.missing(s.planned + count) > available) --count;
  return count;
}

// Returns the number of tokens, at most `count`, after which a recurrent state should be saved. The state
// is saved where the sequence leaves a cached prefix, or at the last multiple of mamba_block_size. The next
// step computes the remaining tokens.
int Scheduler::to_checkpoint(const Sequence& s, int count) const {
  if (!cache_.saved_states || !options_.enable_chunked_prefill) return count;
  const int end = s.planned + count;
  if (s.planned < s.recurrent.branch && s.recurrent.branch < end) return s.recurrent.branch - s.planned;
  const int last = end / options_.mamba_block_size * options_.mamba_block_size;
  return last > s.planned ? last - s.planned : count;
}

// Returns the number of draft tokens, at most `count`, for which there are state slots. If prefixes have
// saved states, draft tokens must not extend past a position at which a state is saved.
int Scheduler::revocable(const Sequence& s, int count) const {
  if (options_.draft_states == 0) return count;
  const int slots = states_.free() - (options_.max_num_seqs - static_cast<int>(running_.size()));
  count = std::min(count, slots);
  return cache_.saved_states ? std::min(count, options_.mamba_block_size - 1 - s.planned % options_.mamba_block_size)
                             : count;
}

// Adds `count` tokens of the sequence to the plan. Blocks must be promised or spare.
void Scheduler::compute(Slot slot, int count, StepPlan& plan) {
  Sequence& s = at(slot);
  take_blocks(s, s.planned + count);

  const auto first = static_cast<std::size_t>(s.planned);
  const std::span<const TokenId> known = std::span(s.tokens).subspan(std::min(first, s.tokens.size()));
  PlannedSequence& p = plan.sequences.emplace_back();
  p.sequence = id(slot);
  p.tag = s.spec.tag;
  p.first = s.planned;
  p.count = count;
  p.tokens = known.first(std::min(known.size(), static_cast<std::size_t>(count)));
  p.last_pending = p.tokens.size() < static_cast<std::size_t>(count);
  p.samples = s.planned + count == s.length();
  p.cached_tokens = s.counts.cached_tokens;
  p.second_text = s.spec.second_text;
  p.blocks = &s.blocks;
  p.state_slot = s.recurrent.slot;

  s.planned += count;
  if (cache_.saved_states && (s.planned == s.recurrent.branch || s.planned % options_.mamba_block_size == 0))
    p.state_to = cache_.saved_states->take();
  if (s.planned >= s.recurrent.branch) s.recurrent.branch = s.spec.checkpoint;
  s.sampling += p.samples;
  s.last_step = in_flight_.last_step + 1;
  budget_ -= count;
  plan.tokens += count;
}

// Adds draft tokens while the token budget and the spare blocks suffice.
void Scheduler::plan_drafts(StepPlan& plan) {
  for (PlannedSequence& p : plan.sequences) {
    Sequence& s = at(slot(p.sequence));
    if (!p.samples || s.sampling > 1 || s.drafts.tokens.empty())
      continue;  // If more than one token is being sampled, the draft tokens belong to an earlier step.
    const int wanted =
        std::min({static_cast<int>(s.drafts.tokens.size()), budget_, ahead_max_ - (s.planned - s.computed),
                  // max_total_tokens - 1, because the last token of a sequence is never computed.
                  s.spec.max_total_tokens - 1 - s.planned});
    const int count = covered(s, revocable(s, wanted));
    if (count <= 0) continue;
    take_blocks(s, s.planned + count);
    p.drafts = std::span(s.drafts.tokens).first(static_cast<std::size_t>(count));
    if (options_.draft_states > 0)
      for (int i = 0; i < count; ++i) s.recurrent.drafts.push_back(states_.take());
    p.draft_states = s.recurrent.drafts;
    s.drafts.in_flight = true;
    budget_ -= count;
    plan.tokens += count;
  }
}

void Scheduler::plan_waiting(StepPlan& plan) {
  if (waiting_.empty() || budget_ == 0 || running_.size() == static_cast<std::size_t>(options_.max_num_seqs))
    return;
  if (options_.policy == Policy::longest_prefix) order_by_prefix();
  frontier_.clear();
  for (const Slot slot : running_) note_frontier(at(slot));

  std::size_t index = 0;
  while (index < waiting_.size() && index < kSharersPassedMax && budget_ > 0 &&
         running_.size() < static_cast<std::size_t>(options_.max_num_seqs)) {
    const Slot slot = waiting_[index];
    switch (admit(slot, plan)) {
      case Admission::admitted:
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case Admission::shares:
        // The sequence waits for a running sequence or for resume(), so the next sequence is examined.
        ++index;
        break;
      case Admission::must_wait:
        return;  // No later sequence is admitted before this one, because this one could otherwise starve.
    }
  }
}

// Admits a sequence if the blocks suffice for all known tokens (the prompt, and the output before a
// preemption) without preempting other sequences. After max_preemptions preemptions, the blocks must
// suffice for all tokens that the sequence may generate.
Scheduler::Admission Scheduler::admit(Slot slot, StepPlan& plan) {
  Sequence& s = at(slot);
  if (s.parked) return Admission::shares;
  if (s.sampling > 0) return Admission::must_wait;
  look_up_prefix(s);
  if (computed_elsewhere(s)) return Admission::shares;

  const int known = static_cast<int>(s.tokens.size());
  const int first = match_.blocks * options_.block_size;
  int count = known - first;
  if (options_.long_prefill_token_threshold > 0)
    count = std::min(count, options_.long_prefill_token_threshold);
  if (count > budget_ && !options_.enable_chunked_prefill) return Admission::must_wait;
  count = s.uncut(first, std::min(count, budget_));
  if (count == 0) return Admission::must_wait;

  const bool non_preemptible = s.counts.preemptions >= options_.max_preemptions;
  const int promised = non_preemptible ? s.spec.max_total_tokens - 1 : known;
  if (!have_blocks(s, promised)) return Admission::must_wait;
  const int growth = SequenceBlocks::growth_after(cache_, match_, promised, ahead_max_);

  s.blocks.adopt(match_);
  s.recurrent.slot = states_.take();
  s.computed = s.planned = first;
  // Saving a state costs more than computing a few tokens. So a state is saved at the end of the cached
  // blocks only if a later prompt with the same prefix could then skip enough tokens.
  const int branch = match_.stateless_blocks * options_.block_size;
  s.recurrent.branch = branch - first >= options_.mamba_block_size / 4 ? branch : s.spec.checkpoint;
  s.promised = promised;
  s.non_preemptible = non_preemptible;
  s.state = Sequence::State::running;
  if (s.counts.starts_over == 0 && s.spec.read_prefix_cache) {
    s.counts.cached_tokens = std::min(first, s.prompt_tokens);
    totals_.prefix_queries += known;
    totals_.prefix_hits += first;
  }
  promised_ += growth;
  running_.insert(std::ranges::upper_bound(running_, slot, [&](Slot a, Slot b) { return before(a, b); }),
                  slot);
  if (match_.state_slot != kNoState) {
    cache_.saved_states->touch(match_.state_slot);
    // state that this step reads; unpinned when the step is collected
    cache_.saved_states->pin(match_.state_slot);
  }
  compute(slot, to_checkpoint(s, count), plan);
  plan.sequences.back().state_from = match_.state_slot;
  note_frontier(s);
  return Admission::admitted;
}

// Returns whether there are spare blocks for `promised` tokens of the sequence, whose prefix is in match_.
// Takes blocks of the reserve if that is enough. They keep their content, so the prefix stays the same.
bool Scheduler::have_blocks(Sequence& s, int promised) {
  const int margin = running_.empty() ? 0 : watermark_blocks_;
  const auto missing = [&] {
    const int growth = SequenceBlocks::growth_after(cache_, match_, promised, ahead_max_);
    return match_.unreferenced + match_.lent + growth - (spare() - margin);
  };
  int more = missing();
  if (more <= 0) return true;
  if (!can_reclaim(more)) return false;
  while (more > 0 && reclaim(more)) {
    look_up_prefix(s);
    more = missing();
  }
  return more <= 0;
}

// Returns whether the sequence or hold whose prefix is in match_ can get `blocks` more blocks from the
// reserve. A block of match_ that the reserve frees does not count, because the user of match_ takes it
// again. Exception: in a sliding-window group such a block counts, because it moves from match_.lent to
// match_.unreferenced.
bool Scheduler::can_reclaim(int blocks) const {
  if (holds_.reserve == nullptr) return false;
  int most = holds_.reserve->reclaimable();
  for (int g = 0; g < cache_.group_count() && blocks <= most; ++g)
    if (cache_.group(g).window == 0)
      for (const BlockId block : match_.tables[static_cast<std::size_t>(g)])
        most -= block != kNoBlock && holds_.reserve->can_free(block);
  return blocks <= most;
}

// Finds the cached prefix of the sequence and stores the result in match_.
void Scheduler::look_up_prefix(Sequence& s) {
  BlockHistory history = s.history();
  if (!s.spec.read_prefix_cache) history.keys = {};
  find_prefix(cache_, history, match_);
}

// Sorts the beginning of the waiting queue by the length of the cached prefix, longest first. New arrivals
// are sorted in only after all earlier ones are admitted, so that no sequence is overtaken forever.
void Scheduler::order_by_prefix() {
  if (at(waiting_.front()).arrival > reorder_limit_) reorder_limit_ = last_arrival_;
  const std::size_t reordered_max = std::min(kReorderedMax, waiting_.size());
  std::size_t count = 0;
  for (; count < reordered_max && at(waiting_[count]).arrival <= reorder_limit_; ++count) {
    Sequence& s = at(waiting_[count]);
    look_up_prefix(s);
    s.match_blocks = match_.blocks;
  }
  const auto goes_first = [&](Slot a, Slot b) {
    const Sequence &x = at(a), &y = at(b);
    if ((x.counts.starts_over > 0) != (y.counts.starts_over > 0)) return x.counts.starts_over > 0;
    if (x.counts.starts_over == 0 && x.match_blocks != y.match_blocks) return x.match_blocks > y.match_blocks;
    return x.arrival < y.arrival;
  };
  std::sort(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count), goes_first);
}

// In-batch prefix sharing: returns true if a running sequence is computing the next block of this
// sequence's prefix. The wait always ends, because a running sequence cannot stall within its prompt.
bool Scheduler::computed_elsewhere(const Sequence& s) const {
  const int next = match_.blocks;
  if (!s.spec.read_prefix_cache || next >= static_cast<int>(s.keys.size())) return false;
  if ((next + 1) * options_.block_size >= static_cast<int>(s.tokens.size())) return false;
  return std::ranges::find(frontier_, Frontier{next, s.keys[static_cast<std::size_t>(next)]}) !=
         frontier_.end();
}

void Scheduler::note_frontier(const Sequence& s) {
  const int next = s.blocks.published();
  if (next < static_cast<int>(s.keys.size()))
    frontier_.push_back({next, s.keys[static_cast<std::size_t>(next)]});
}

}  // namespace octavo
