// How the scheduler shares out a replica. Names and meanings follow vLLM's engine arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kv/kv_cache.h"
#include "request/prefix_hash.h"

namespace octavo {

// Who goes first: in the queue, and when blocks run short.
enum class Policy : std::uint8_t {
  fcfs,            // the order of arrival
  priority,        // lower Request::priority first, then the order of arrival
  longest_prefix,  // of those waiting, whose prompt has the longest cached prefix; running ones as fcfs
};

struct SchedulerOptions {
  // The cache.
  int block_size = 16;  // tokens
  int num_blocks = 0;   // of all groups together; must be given
  std::vector<CacheGroup> groups = {CacheGroup{}};
  bool enable_prefix_caching = true;
  PrefixHashOptions prefix_hash;
  // States of recurrent layers kept behind prefixes; 0: there are no such layers, or no prefix caching.
  int saved_states = 0;
  // States that draft tokens may leave behind in a step, of all sequences together, so that those that are not accepted
  // can be taken back; 0: there are no such layers, or no draft tokens.
  int draft_states = 0;
  int mamba_block_size = 256;  // tokens, whole blocks: at multiples of it they are kept

  // The step.
  int max_num_batched_tokens = 2048;     // a step's token budget
  int max_num_seqs = 256;                // sequences running at a time
  int long_prefill_token_threshold = 0;  // tokens of one sequence in a step; 0: as many as the budget has
  bool enable_chunked_prefill = true;    // false: a prompt is computed in one step or waits
  int max_steps_in_flight = 2;           // planned and not yet collected
  // False: a sequence whose token is being sampled waits for it, and a step takes its share of the running ones, so
  // that those of all steps in flight are about as many.
  bool samples_ahead = true;
  int max_draft_tokens = 0;              // draft tokens of one sequence that a step may compute

  // Who gets in.
  Policy policy = Policy::fcfs;
  int max_model_len = 0;     // tokens of a sequence, prompt and answer; must be given
  int max_sequences = 4096;  // running and waiting
  double watermark = 0;      // share of the blocks that an admission leaves free
  int max_preemptions = 3;   // of one sequence; after so many it gets in for good or not yet
};

// Errors name the option. A pool that is smaller than one sequence of max_model_len is fine: what cannot fit
// is refused one by one.
Result<> validate(const SchedulerOptions& options);

// Tokens of one sequence that may be planned and not yet known to be computed.
int tokens_ahead_max(const SchedulerOptions& options);

// The most blocks that a sequence of so many tokens, prompt and answer, ever holds.
int blocks_of_sequence(const SchedulerOptions& options, int tokens);

// The longest sequence that the pool holds when it has all of it: at most max_model_len, which may then be
// set to it; 0 when there is none.
int longest_sequence(SchedulerOptions options);

}  // namespace octavo
