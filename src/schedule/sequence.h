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
  int max_total_tokens = 0;           // maximum number of prompt and output tokens together
  std::int64_t priority = 0;          // a lower value is scheduled first under Policy::priority
  Hash128 identity = {};          // only sequences with equal identity share cached prefixes (CacheIdentity)
  bool read_prefix_cache = true;  // false: compute every prompt position (for prompt logprobs)
  std::uint64_t tag = 0;          // chosen by the caller; returned in every plan
  int second_text = kNoSecondText;  // position of its first token; returned in every plan
  std::vector<Hash128> extras{};    // media_identities of the prompt
  // Position after which the recurrent state is always saved; a multiple of the block size. 0: the
  // scheduler chooses.
  int checkpoint = 0;
  // Ranges [first, end) of prompt positions, ascending. One step computes a range to its end, because
  // its tokens (of an image) attend to each other. Each range fits into a step.
  std::vector<std::pair<int, int>> wholes{};
};

struct Drafts {
  std::vector<TokenId> tokens;  // draft tokens of the next step
  bool in_flight = false;       // true: a step in flight computes draft tokens
};

// Slots for the recurrent states of a running sequence.
struct RecurrentSlots {
  int slot = kNoState;
  // While draft tokens are in flight: slots for the states before each draft token, then slots for the
  // states after the tokens that may be committed next.
  std::vector<int> drafts;
  int branch = 0;  // position where the sequence leaves a prefix that has cached blocks but no saved
                   // state; 0: none
};

struct SequenceCounts {
  int preemptions = 0;
  int starts_over = 0;    // number of times that it lost its blocks: preemptions and Scheduler::retract
  int cached_tokens = 0;  // number of prompt tokens found in the cache at the first admission
};

struct Sequence {
  enum class State : std::uint8_t { unused, waiting, running };

  State state = State::unused;
  bool parked = false;           // true between Scheduler::park and resume
  bool non_preemptible = false;  // true: all blocks that it can need are promised
  std::uint32_t generation = 0;  // number of sequences that have used this slot
  std::uint64_t arrival = 0;     // number of sequences that arrived before
  SequenceSpec spec;             // its prompt and output are empty: see `tokens`
  int prompt_tokens = 0;

  // Positions [0, computed) are cached. Steps in flight write positions [computed, planned). They also
  // sample the last `sampling` tokens, whose ids are not known yet.
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

  // Number of tokens, at most `count`, that a step may compute from position `first` on. The step must
  // not end within one of `wholes`, so it stops before it.
  int uncut(int first, int count) const {
    for (const auto& [begin, end] : spec.wholes)
      if (begin < first + count && first + count < end) return std::max(begin - first, 0);
    return count;
  }
  int length() const { return static_cast<int>(tokens.size()) + sampling; }
  // Bytes of the sequence, all allocated when it is added.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((tokens.capacity() + drafts.tokens.capacity()) * sizeof(TokenId) +
                                     (keys.capacity() + spec.extras.capacity()) * sizeof(Hash128) +
                                     spec.wholes.capacity() * sizeof(spec.wholes[0]) + blocks.bytes());
  }
  BlockHistory history() const { return {tokens, keys, spec.identity, spec.extras}; }
};

}  // namespace octavo
