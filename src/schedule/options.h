// Limits of the scheduler. Names and meanings follow vLLM's engine arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kv/kv_cache.h"
#include "request/prefix_hash.h"

namespace octavo {

// Order of the waiting queue, and order of preemption when there are too few free blocks.
enum class Policy : std::uint8_t {
  fcfs,
  priority,        // lower Request::priority first; for equal priorities, earlier arrival first
  longest_prefix,  // waiting sequences: longest cached prefix first; running sequences: same as fcfs
};

struct SchedulerOptions {
  int block_size = 16;  // tokens per block
  int num_blocks = 0;   // number of blocks for all groups together; required
  std::vector<CacheGroup> groups = {CacheGroup{}};
  bool enable_prefix_caching = true;
  PrefixHashOptions prefix_hash;
  // Number of saved states of recurrent layers; 0 without recurrent layers or without prefix caching.
  int saved_states = 0;
  // Number of state slots for the draft tokens of a step, over all sequences. With these slots, rejected
  // tokens can be undone. 0 without recurrent layers or without draft tokens.
  int draft_states = 0;
  int mamba_block_size = 256;  // states are saved at multiples of this number of tokens; a multiple of
                               // block_size

  int max_num_batched_tokens = 2048;  // maximum number of tokens in a step
  int max_num_seqs = 256;
  int long_prefill_token_threshold = 0;  // maximum number of tokens of one sequence in a step; 0: no limit
  bool enable_chunked_prefill = true;    // false: each prompt runs in a single step
  int max_steps_in_flight = 2;           // maximum number of steps that are planned but not yet collected
  // false: a sequence waits while its token is being sampled. Each step then computes a part of the running
  // sequences, so that all steps in flight have about the same number of sequences.
  bool samples_ahead = true;
  int max_draft_tokens = 0;  // maximum number of draft tokens of one sequence in a step

  Policy policy = Policy::fcfs;
  int max_model_len = 0;     // maximum number of prompt and output tokens of a sequence; required
  int max_sequences = 4096;  // maximum number of running and waiting sequences
  double watermark = 0;      // fraction of the blocks that stays free when a sequence is admitted
  int max_preemptions = 3;   // after this number of preemptions, a sequence is admitted only if it can finish
};

// Checks the options; errors name the option. The pool may be smaller than one sequence of max_model_len:
// add() rejects each sequence that cannot fit.
Result<> validate(const SchedulerOptions& options);

// Returns the maximum number of tokens of one sequence that are planned but may not be computed yet.
int tokens_ahead_max(const SchedulerOptions& options);

// Returns the maximum number of blocks of a sequence with this number of prompt and output tokens.
int blocks_of_sequence(const SchedulerOptions& options, int tokens);

// Returns the length of the longest sequence that fits into the pool, at most max_model_len. It is a valid
// value of max_model_len. Returns 0 if no sequence fits.
int longest_sequence(SchedulerOptions options);

}  // namespace octavo
