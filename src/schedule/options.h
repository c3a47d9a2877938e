// Limits of the scheduler. Names and meanings follow vLLM's engine arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kv/kv_cache.h"
#include "request/prefix_hash.h"

namespace octavo {

// Order of the queue, and of preemption when blocks run short.
enum class Policy : std::uint8_t {
  fcfs,            // order of arrival
  priority,        // lower Request::priority first, then order of arrival
  longest_prefix,  // waiting sequences: longest cached prefix first; running ones like fcfs
};

struct SchedulerOptions {
  // Cache.
  int block_size = 16;  // tokens
  int num_blocks = 0;   // of all groups together; required
  std::vector<CacheGroup> groups = {CacheGroup{}};
  bool enable_prefix_caching = true;
  PrefixHashOptions prefix_hash;
  // Number of saved states of recurrent layers; 0 without such layers or prefix caching.
  int saved_states = 0;
  // Number of state slots for the draft tokens of a step, over all sequences, so that rejected tokens can be
  // undone; 0 without recurrent layers or draft tokens.
  int draft_states = 0;
  int mamba_block_size = 256;  // tokens, a multiple of block_size: states are saved at its multiples

  // Step.
  int max_num_batched_tokens = 2048;     // a step's token budget
  int max_num_seqs = 256;                // maximum number of running sequences
  int long_prefill_token_threshold = 0;  // maximum tokens of one sequence in a step; 0: up to the budget
  bool enable_chunked_prefill = true;    // false: a prompt is computed in one step or waits
  int max_steps_in_flight = 2;           // planned and not yet collected
  // False: a sequence waits while its token is being sampled. Each step then takes a share of the running
  // sequences, so that all steps in flight have about the same number.
  bool samples_ahead = true;
  int max_draft_tokens = 0;  // maximum draft tokens of one sequence in a step

  // Admission.
  Policy policy = Policy::fcfs;
  int max_model_len = 0;     // tokens of a sequence, prompt and output; required
  int max_sequences = 4096;  // running and waiting
  double watermark = 0;      // share of the blocks that an admission leaves free
  int max_preemptions = 3;   // of one sequence; after this number it is admitted only if it can finish
};

// Errors name the option. A pool smaller than one sequence of max_model_len is valid: sequences that cannot
// fit are refused one by one.
Result<> validate(const SchedulerOptions& options);

// Maximum tokens of one sequence that are planned but not known to be computed.
int tokens_ahead_max(const SchedulerOptions& options);

// Maximum number of blocks that a sequence of this length, prompt and output, holds.
int blocks_of_sequence(const SchedulerOptions& options, int tokens);

// The longest sequence that fits into the whole pool, at most max_model_len (a valid value for it); 0 if none
// fits.
int longest_sequence(SchedulerOptions options);

}  // namespace octavo
