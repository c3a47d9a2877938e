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

// Identifies a sequence from add() to finish() only: slot in the low half, generation of the slot in the high
// half.
enum class SequenceId : std::uint64_t {};

inline std::uint32_t slot(SequenceId id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
}

inline constexpr int kNoSecondText = std::numeric_limits<int>::max();

// Arguments of add(). A request with n choices is n of these with one prompt.
struct SequenceSpec {
  std::span<const TokenId> prompt;    // copied
  std::span<const TokenId> output{};  // generated before; copied
  int max_total_tokens = 0;           // prompt and output
  std::int64_t priority = 0;          // lower goes first under Policy::priority
  Hash128 identity = {};          // only sequences with equal identity share cached prefixes (CacheIdentity)
  bool read_prefix_cache = true;  // false: computes every prompt position (prompt logprobs)
  std::uint64_t tag = 0;          // chosen by the caller; returned in every plan
  int second_text = kNoSecondText;  // its first position; returned in every plan
  std::vector<Hash128> extras{};    // media_identities of the prompt
  // Position after which the recurrent state is always saved, a multiple of the block size; if 0, the
  // scheduler chooses.
  int checkpoint = 0;
  // Ranges [first, end) of prompt positions, ascending, that one step computes to their end: images whose
  // tokens attend to each other. Each fits into a step.
  std::vector<std::pair<int, int>> wholes{};
};

// Draft tokens of speculative decoding.
struct Drafts {
  std::vector<TokenId> tokens;  // for the next step
  bool in_flight = false;       // a step computes some: the sequence's next tokens depend on them
};

// Slots of the recurrent layers' states, of a running sequence.
struct RecurrentSlots {
  int slot = kNoState;
  // While draft tokens are in flight: slots for the states before each of them; then for the states after the
  // tokens that may be committed next.
  std::vector<int> drafts;
  int branch = 0;  // position where it leaves a prefix with cached blocks but no state; 0: nowhere
};

struct SequenceCounts {
  int preemptions = 0;
  int starts_over = 0;    // number of times it lost its memory: preemptions and Scheduler::retract
  int cached_tokens = 0;  // prompt tokens found in the cache at the first admission
};

struct Sequence {
  enum class State : std::uint8_t { unused, waiting, running };

  State state = State::unused;
  bool parked = false;           // Scheduler::park
  bool non_preemptible = false;  // admitted with a promise of all blocks it can ever need; never preempted
  std::uint32_t generation = 0;  // number of sequences that used this slot
  std::uint64_t arrival = 0;     // number of earlier sequences
  SequenceSpec spec;             // with an empty prompt and output: they are in `tokens`
  int prompt_tokens = 0;

  // Positions [0, computed) are known to be cached; steps in flight write [computed, planned). Those steps
  // are sampling the last `sampling` tokens: their positions are known, their ids are not.
  int computed = 0;
  int planned = 0;
  int sampling = 0;
  std::uint64_t last_step = 0;  // the last step that included it
  int promised = 0;             // length up to which blocks are kept free for it
  int match_blocks = 0;         // longest_prefix: cached blocks at the last look-up
  SequenceCounts counts;

  std::vector<TokenId> tokens;  // prompt and output
  std::vector<Hash128> keys;    // of its full blocks
  Drafts drafts;
  SequenceBlocks blocks;
  RecurrentSlots recurrent;

  // How many of `count` tokens from `first` on a step may compute: excludes tokens of a whole whose end it
  // does not reach.
  int uncut(int first, int count) const {
    for (const auto& [begin, end] : spec.wholes)
      if (begin < first + count && first + count < end) return std::max(begin - first, 0);
    return count;
  }
  int length() const { return static_cast<int>(tokens.size()) + sampling; }
  // Memory of the sequence, all allocated when it is added.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((tokens.capacity() + drafts.tokens.capacity()) * sizeof(TokenId) +
                                     (keys.capacity() + spec.extras.capacity()) * sizeof(Hash128) +
                                     spec.wholes.capacity() * sizeof(spec.wholes[0]) + blocks.bytes());
  }
  BlockHistory history() const { return {tokens, keys, spec.identity, spec.extras}; }
};

}  // namespace octavo
