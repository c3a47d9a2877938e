// Options of the scheduler. Names and meanings follow vLLM's engine arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kv/kv_cache.h"
#include "request/prefix_hash.h"

namespace octavo {

// Order in which waiting sequences are admitted, and in which running sequences are preempted when blocks
// are missing.
enum class Policy : std::uint8_t {
  fcfs,
  // Sequences with a lower Request::priority come first. Earlier arrivals come first if the priorities are
  // equal.
  priority,
  // Waiting sequences with a longer cached prefix come first. Preemption is the same as with fcfs.
  longest_prefix,
};

// Options that users choose. EngineOptions contains them.
struct ScheduleOptions {
  int max_num_batched_tokens = 2048;  // maximum number of tokens in a step, of all sequences together
  int max_num_seqs = 128;
  int long_prefill_token_threshold = 0;  // maximum number of tokens of one sequence in a step; 0: no limit
  bool enable_chunked_prefill = true;    // false: each prompt is computed in a single step
  double watermark = 0;  // fraction of the blocks that must stay free when a sequence is admitted
  Policy policy = Policy::fcfs;
};

struct SchedulerOptions : ScheduleOptions {
  int block_size = 16;  // tokens per block
  int num_blocks = 0;   // total number of blocks of all groups; required
  std::vector<CacheGroup> groups = {CacheGroup{}};
  bool enable_prefix_caching = true;
  PrefixHashOptions prefix_hash{};
  // Number of slots for saved states of recurrent layers. 0 without recurrent layers or without prefix
  // caching.
  int saved_states = 0;
  // Number of state slots for draft tokens, for all sequences together. A sequence returns to one of these
  // states when a draft token is rejected. 0 without recurrent layers or without draft tokens.
  int draft_states = 0;
  // States are saved at multiples of this number of tokens. It must be a multiple of block_size.
  int mamba_block_size = 256;

  int max_steps_in_flight = 2;  // maximum number of steps that are planned but not collected
  // true: a sequence is planned again while a step in flight still samples its previous token. false: the
  // sequence waits for that token. Each step then includes only a part of the running sequences, so that
  // all steps in flight have about the same size.
  bool samples_ahead = true;
  int max_draft_tokens = 0;

  int max_model_len = 0;  // maximum number of prompt and output tokens of a sequence; required
  int max_sequences = 4096;
  // A sequence that was preempted this many times is admitted only if there are blocks for max_total_tokens
  // tokens.
  int max_preemptions = 3;
};

// Returns an error that names the option. Accepts a pool that is too small for max_model_len tokens:
// Scheduler::add() rejects each sequence that does not fit.
Result<> validate(const SchedulerOptions& options);

// Returns the maximum number of tokens of one sequence that are planned but not computed yet.
int tokens_ahead_max(const SchedulerOptions& options);

// Returns the maximum number of blocks that a sequence with `tokens` prompt and output tokens has at the
// same time.
int blocks_of_sequence(const SchedulerOptions& options, int tokens);

// Returns the maximum length of a sequence that fits into the pool, at most max_model_len. Returns 0 if no
// sequence fits.
int longest_sequence(SchedulerOptions options);

}  // namespace octavo
