// State of one sequence in the scheduler.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kv/sequence_blocks.h"
#include "kv/state_pool.h"
#include "request/sampling_params.h"

namespace octavo {

// Id of a sequence, valid from add() to finish(). Low half: slot. High half: generation of the slot.
enum class SequenceId : std::uint64_t {};

inline std::uint32_t slot(SequenceId id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
}

inline constexpr int kNoSecondText = std::numeric_limits<int>::max();

// Arguments of add(). A request with n choices adds n sequences with the same prompt.
struct SequenceSpec {
  std::span<const TokenId> prompt;    // copied
  std::span<const TokenId> output{};  // earlier output tokens; copied
  int max_total_tokens = 0;           // maximum number of prompt and output tokens in total
  std::int64_t priority = 0;          // priority; under Policy::priority, lower values are scheduled first
  Hash128 identity = {};  // only sequences with equal identities share cached prefixes (CacheIdentity)
  bool read_prefix_cache = true;    // false: every prompt position is computed (for prompt logprobs)
  std::uint64_t tag = 0;            // value that the caller chooses; it is returned in every plan
  int second_text = kNoSecondText;  // position of the first token of the second text; returned in every plan
  std::vector<Hash128> extras{};    // media_identities of the prompt
  // Position after which the recurrent state is always saved; a multiple of the block size. 0: the scheduler
  // chooses positions.
  int checkpoint = 0;
  // Ranges [first, end) of prompt positions in ascending order. A range must be computed by a single step,
  // because its tokens (of an image) attend to each other. Each range fits into a step.
  std::vector<std::pair<int, int>> wholes{};
};

struct Drafts {
  std::vector<TokenId> tokens;  // draft tokens of the next step
  bool in_flight = false;       // whether a step in flight computes draft tokens
};

// Slots for the recurrent states of a running sequence.
struct RecurrentSlots {
  int slot = kNoState;
  // While draft tokens are in flight: slots for the states before each draft token, then slots for the states
  // after the tokens that may be committed next.
  std::vector<int> drafts;
  int branch = 0;  // position at which the sequence leaves a prefix that has cached blocks but no saved
                   // state; 0: none
};

struct SequenceCounts {
  int preemptions = 0;
  int starts_over = 0;    // number of times that the sequence lost its blocks: by preemptions and
                          // Scheduler::retract
  int cached_tokens = 0;  // number of prompt tokens that were cached at the first admission
};

struct Sequence {
  enum class State : std::uint8_t { unused, waiting, running };

  State state = State::unused;
  bool parked = false;           // true between Scheduler::park and resume
  bool non_preemptible = false;  // whether all blocks that the sequence can need are promised
  std::uint32_t generation = 0;  // number of sequences that have used this slot
  std::uint64_t arrival = 0;     // number of sequences that arrived before this one
  SequenceSpec spec;             // spec without prompt and output, which are in `tokens`
  int prompt_tokens = 0;

  // Positions [0, computed) are cached. Steps in flight write positions [computed, planned). They also sample
  // the last `sampling` tokens, whose ids are not known yet.
  int computed = 0;
  int planned = 0;
  int sampling = 0;
  std::uint64_t last_step = 0;  // number of the last step that included the sequence
  int promised = 0;             // length up to which blocks are reserved for the sequence
  int match_blocks = 0;         // longest_prefix: number of cached blocks at the last look-up
  SequenceCounts counts;

  std::vector<TokenId> tokens;  // prompt and output
  std::vector<Hash128> keys;    // keys of its full blocks
  Drafts drafts;
  SequenceBlocks blocks;
  RecurrentSlots recurrent;

  // Returns the number of tokens, at most `count`, that a step may compute from position `first` on. A step
  // that would end within one of `wholes` stops before this range.
  int uncut(int first, int count) const {
    for (const auto& [begin, end] : spec.wholes)
      if (begin < first + count && first + count < end) return std::max(begin - first, 0);
    return count;
  }
  int length() const { return static_cast<int>(tokens.size()) + sampling; }
  // Returns the bytes of the sequence, which are all allocated when it is added.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((tokens.capacity() + drafts.tokens.capacity()) * sizeof(TokenId) +
                                     (keys.capacity() + spec.extras.capacity()) * sizeof(Hash128) +
                                     spec.wholes.capacity() * sizeof(spec.wholes[0]) + blocks.bytes());
  }
  BlockHistory history() const { return {tokens, keys, spec.identity, spec.extras}; }
};

}  // namespace octavo
