// Decides for each step which sequences compute how many tokens, and which blocks they use. The engine loop
// calls it.
//
// There are no prefill and decode phases. A sequence has known tokens that are not computed yet, and a step
// computes some of these tokens. This is continuous batching (Orca, Yu et al., OSDI 2022) with chunked
// prefill (Sarathi-Serve, Agrawal et al., OSDI 2024). docs/design/scheduling.md explains the rules, and why
// every sequence finishes.
//
//   plan(step);  launch the step                  // plan() may be called again before collect()
//   collect(step.step);                           // after the step is computed
//   commit(sequence, id) or finish(sequence)      // for each planned sequence with `samples`
//
// The scheduler uses no clock, thread or I/O, and allocates no memory after add(). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "kv/kv_cache.h"
#include "request/prefix_hash.h"
#include "schedule/block_reserve.h"
#include "schedule/options.h"
#include "schedule/prefix_hold.h"
#include "schedule/sequence.h"
#include "schedule/step_plan.h"

namespace octavo {

struct SchedulerStats {
  int running = 0;
  int waiting = 0;
  int blocks_total = 0;
  int blocks_used = 0;  // blocks that sequences or holds use, or that a step in flight may still access
  int blocks_cached = 0;
  int blocks_free = 0;
  std::int64_t sequence_bytes = 0;  // memory of all sequences: tokens, keys and block tables
  std::int64_t preemptions = 0;
  // tokens that were looked up in the prefix cache; the tokens of a preempted sequence count once
  std::int64_t prefix_queries = 0;
  std::int64_t prefix_hits = 0;  // tokens of prefix_queries that were found
};

class Scheduler {
 public:
  static Result<std::unique_ptr<Scheduler>> create(SchedulerOptions options);

  // Errors: invalid_argument (the message names the field and the limit) if the prompt is empty or leaves no
  // space for output, or if the length exceeds max_model_len or the pool. The result depends only on the
  // options, so any thread may call it.
  Result<> fits(std::size_t prompt_tokens, int max_total_tokens) const;

  // Adds a sequence to the waiting queue. Returns an error if the sequence does not fit, and
  // resource_exhausted if there are max_sequences sequences already.
  Result<SequenceId> add(const SequenceSpec& spec);

  // Writes the next step to `plan`. At most max_steps_in_flight non-empty plans may be uncollected.
  void plan(StepPlan& plan);

  // Reports that the oldest step in flight is computed. Other sequences can then share the blocks that the
  // step wrote, and blocks that were freed in the meantime can be reused. If a sequence has broken logits,
  // call finish() for it before collect(), so that its blocks are not shared.
  void collect(StepNumber step);

  // Reports the token that a step sampled for a planned sequence with `samples`. Call it once for each such
  // sequence, in the order of the plan, before the next step is collected. Returns false and changes
  // nothing if the sequence has ended.
  bool commit(SequenceId sequence, TokenId token);

  // Appends a token that was not sampled. The next steps compute the token together with the other new
  // tokens. No step in flight may sample for the sequence.
  void append(SequenceId sequence, TokenId token);

  // Replaces the draft tokens, which follow the last known token; at most max_draft_tokens (speculative
  // decoding: Leviathan et al., ICML 2023). The next step computes draft tokens while the token budget and
  // the blocks suffice. commit() removes the draft tokens. No step in flight may sample for the sequence.
  void draft(SequenceId sequence, std::span<const TokenId> tokens);

  // Called after commit() if the committed token was an accepted draft token. The position of that draft
  // token is then computed already, and `token` was sampled from the logits of the position.
  void commit_draft(SequenceId sequence, TokenId token);

  // Excludes the sequence from plans until resume(), because the caller cannot provide the next token yet.
  void park(SequenceId sequence) { live(sequence)->parked = true; }
  void resume(SequenceId sequence) { live(sequence)->parked = false; }
  // Removes the sequence from the newest step in flight, which must not sample for the sequence. Later
  // plans compute these tokens again, from the cached prefix.
  void retract(SequenceId sequence);

  // Ends a sequence, finished or aborted. Steps in flight may include the sequence. The computed prefix
  // stays cached. Returns false if the sequence has ended already. The caller must finish a sequence that
  // has reached max_total_tokens.
  bool finish(SequenceId sequence);

  void reset_prefix_cache();

  // Logs changes of the prefix cache from now on, see BlockPool::log_to.
  void log_to(KvEventLog& log) { cache_.pool.log_to(log); }
  void log_all() { cache_.pool.log_all(); }
  void observe(BlockObserver& observer) { cache_.pool.observe(observer); }
  void observe(StateObserver& observer) {
    if (cache_.saved_states) cache_.saved_states->observe(observer);
  }
  // After a restart: restores contents of the earlier process, see BlockPool::restore and
  // SavedStates::restore. Call it before the first add().
  void restore(BlockId block, const BlockContent& content, PrefixId prefix) {
    cache_.pool.restore(block, content, prefix);
  }
  void restore_state(int slot, PrefixId prefix) { cache_.saved_states->restore(slot, prefix); }

  // Holds the cached full blocks of a prompt. If there are fewer than `blocks`, adds empty blocks, and an
  // empty state if the model needs one. The caller fills the empty blocks and then calls publish(). For
  // `extras`, see SequenceSpec. Returns null if there are too few free blocks, or if every state slot is
  // being read or written. Requires prefix caching.
  PrefixHold* hold(std::span<const TokenId> prompt, Hash128 identity, int blocks,
                   std::span<const Hash128> extras = {});
  // Reports that the first `blocks` blocks have their content, so that other sequences can share them. If
  // `blocks` is the number of all blocks, the state must have its content, too.
  void publish(PrefixHold& hold, int blocks);
  // Returns another hold of the same blocks. hold.is_whole() must be true.
  PrefixHold* share(const PrefixHold& hold);
  // Ends the hold. Published blocks stay cached.
  void let_go(PrefixHold* hold);
  // Releases all blocks of the hold except the first `blocks` ones. hold.is_whole() must be true. Only for
  // caches in which each block of a prefix can be used without the later ones: all layers have full
  // attention, and there are no states.
  void shorten(PrefixHold& hold, int blocks);
  bool can_shorten() const;
  // Before a sequence waits for blocks or is preempted, the scheduler takes blocks from the reserve. The
  // reserve must outlive this object.
  void take_from(BlockReserve& reserve) { holds_.reserve = &reserve; }

  bool contains(SequenceId sequence) const { return find(sequence) != nullptr; }
  const Sequence* find(SequenceId sequence) const;
  std::span<const TokenId> output(SequenceId sequence) const;
  SchedulerStats stats() const;
  const SchedulerOptions& options() const { return options_; }
  const KvCache& cache() const { return cache_; }
  // Returns the number of free blocks that sequences may need because they share blocks of sliding-window
  // groups: a sequence that moves past a shared block allocates a new block, but frees none. Holds never
  // move past a block, so of all holds of a block, only one counts as a user.
  int lent() const;

  // CHECKs all invariants of queues, blocks and promises. Takes linear time, so only tests and fuzzers call
  // it.
  void check() const;

 private:
  using Slot = std::uint32_t;

  // A sequence in a step in flight. The entry is ignored if the sequence has ended or was preempted.
  struct Launched {
    SequenceId sequence;
    int starts_over;
    int end;                   // number of computed positions after the step
    int state_from, state_to;  // see PlannedSequence
  };
  struct Flight {
    StepNumber step = 0;
    std::vector<Launched> sequences;
  };
  // A block of an ended or preempted sequence that a step in flight may still access.
  struct DeferredBlock {
    StepNumber step;  // last step that may access the block
    BlockId block;
  };

  struct InFlight {
    StepNumber last_step = 0;
    std::vector<Flight> steps;          // oldest first
    std::vector<Flight> spare;          // unused elements, kept to reuse their memory
    std::vector<DeferredBlock> blocks;  // sorted by step
  };

  // The next block that a running sequence computes. Waiting sequences with the same prefix wait for the
  // block.
  struct Frontier {
    int block;
    Hash128 key;
    bool operator==(const Frontier&) const = default;
  };

  explicit Scheduler(SchedulerOptions options);

  Sequence& at(Slot slot) { return sequences_[slot]; }
  const Sequence& at(Slot slot) const { return sequences_[slot]; }
  SequenceId id(Slot slot) const;
  Sequence* live(SequenceId sequence);  // Returns null if the sequence has ended.
  bool before(Slot a, Slot b) const;

  enum class Admission : std::uint8_t { admitted, shares, must_wait };
  void plan_decodes(StepPlan& plan);
  void plan_prefills(StepPlan& plan);
  void plan_waiting(StepPlan& plan);
  void plan_drafts(StepPlan& plan);
  bool make_room(std::size_t index, StepPlan& plan);
  bool preempt_below(std::size_t index, StepPlan& plan);
  void start_over(Slot slot);
  Admission admit(Slot slot, StepPlan& plan);
  void compute(Slot slot, int count, StepPlan& plan);
  void take_blocks(Sequence& s, int end);
  int covered(const Sequence& s, int count) const;
  int to_checkpoint(const Sequence& s, int count) const;
  int revocable(const Sequence& s, int count) const;
  int tokens_wanted(const Sequence& s) const;
  int promise(const Sequence& s) const;
  int spare() const;
  bool have_blocks(Sequence& s, int promised);
  bool can_reclaim(int blocks) const;
  PrefixHold& keep(std::unique_ptr<PrefixHold> hold);
  void count_held(const PrefixHold& hold, int sign);
  void check_holds(std::vector<int>& references) const;
  bool reclaim(int blocks) {
    return blocks > 0 && holds_.reserve != nullptr && holds_.reserve->reclaim(blocks);
  }
  void look_up_prefix(Sequence& s);
  void order_by_prefix();
  bool computed_elsewhere(const Sequence& s) const;
  void note_frontier(const Sequence& s);

  void enqueue(Slot slot);
  void give_up_memory(Sequence& s);
  void give_back_draft_states(Sequence& s);
  static void next_draft_state(Sequence& s);
  bool in_flight(const Sequence& s) const;

  SchedulerOptions options_;
  PrefixHasher hasher_;
  KvCache cache_;
  StatePool states_;
  int ahead_max_;  // maximum number of tokens of one sequence in flight
  int watermark_blocks_;

  std::vector<Sequence> sequences_;  // [slot]
  std::vector<Slot> unused_;
  std::vector<Slot> running_;  // sorted by policy
  std::vector<Slot> waiting_;  // in order of admission
  InFlight in_flight_;
  std::vector<BlockId> given_up_;  // scratch memory
  PrefixMatch match_;              // scratch memory: result of the last look_up_prefix()
  struct {
    std::map<const PrefixHold*, std::unique_ptr<PrefixHold>> all;
    BlockReserve* reserve = nullptr;
    std::vector<int> of_block;  // [block]: number of holds, only for sliding-window groups
    int extra = 0;              // sum of (of_block - 1) over all blocks with holds
  } holds_;
  std::vector<Frontier> frontier_;  // next blocks that the step being planned computes

  std::uint64_t last_arrival_ = 0;
  std::uint64_t reorder_limit_ = 0;  // last arrival that may be reordered, under Policy::longest_prefix
  int budget_ = 0;                   // number of tokens left in the step being planned
  int promised_ = 0;                 // number of blocks that running sequences may still allocate
  SchedulerStats totals_;            // stats(): only sequence_bytes and the counters are kept here
};

}  // namespace octavo
