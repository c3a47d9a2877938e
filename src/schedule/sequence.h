// The scheduler's state of one sequence.
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

// Id of a sequence, valid from Scheduler::add() to finish(). The low half is the slot, and the high half is
// the generation of the slot.
enum class SequenceId : std::uint64_t {};

inline std::uint32_t slot(SequenceId id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
}

inline constexpr int kNoSecondText = std::numeric_limits<int>::max();

// Arguments of Scheduler::add(). A request with n > 1 adds n sequences with the same prompt.
struct SequenceSpec {
  std::span<const TokenId> prompt;  // copied
  // output tokens that the sequence already has, for example from an engine that crashed; copied
  std::span<const TokenId> output{};
  int max_total_tokens = 0;   // maximum number of prompt and output tokens in total
  std::int64_t priority = 0;  // used by Policy::priority; lower values are scheduled first
  Hash128 identity = {};      // sequences share prefixes only if their identities are equal (CacheIdentity)
  bool read_prefix_cache = true;  // false: every prompt position is computed (for prompt logprobs)
  std::uint64_t tag = 0;          // chosen by the caller; plans return the value
  // start of the second text of a pair; plans return the value
  int second_text = kNoSecondText;
  std::vector<Hash128> extras{};  // media_identities of the prompt
  // The recurrent state after this position is always saved. The position is a multiple of the block size.
  // 0: the scheduler chooses the positions.
  int checkpoint = 0;
  // Ranges [first, end) of prompt positions, in ascending order. The tokens of a range, such as those of an
  // image, attend to each other, so a single step must compute the range. Each range fits into a step.
  std::vector<std::pair<int, int>> wholes{};
};

struct Drafts {
  std::vector<TokenId> tokens;
  bool in_flight = false;
};

struct RecurrentSlots {
  int slot = kNoState;
  // While draft tokens are in flight: the slots of the states before each draft token. When the step is
  // collected, the slot of the state after all draft tokens is appended.
  std::vector<int> drafts;
  // Position at which the sequence saves its recurrent state: the end of the cached blocks if no state is
  // saved there, or SequenceSpec::checkpoint. 0: none.
  int branch = 0;
};

struct SequenceCounts {
  int preemptions = 0;
  // Number of times that the sequence lost its blocks, by preemption or Scheduler::retract.
  int starts_over = 0;
  int cached_tokens = 0;  // prompt tokens that were cached at the first admission
};

struct Sequence {
  enum class State : std::uint8_t { unused, waiting, running };

  State state = State::unused;
  bool parked = false;           // set by Scheduler::park, cleared by resume
  bool non_preemptible = false;  // true if all blocks that the sequence can need are promised
  std::uint32_t generation = 0;  // number of sequences that have used this slot
  std::uint64_t arrival = 0;     // number of sequences that arrived earlier
  SequenceSpec spec;             // prompt and output are empty, because `tokens` contains them
  int prompt_tokens = 0;

  // KV of positions [0, computed) is cached. Steps in flight compute positions [computed, planned). These
  // steps also sample the last `sampling` tokens, whose ids are not known yet.
  int computed = 0;
  int planned = 0;
  int sampling = 0;
  std::uint64_t last_step = 0;  // last step that included the sequence
  int promised = 0;             // length in tokens for which blocks are reserved
  int match_blocks = 0;         // number of cached blocks at the last look-up, under Policy::longest_prefix
  SequenceCounts counts;

  std::vector<TokenId> tokens;
  std::vector<Hash128> keys;
  Drafts drafts;
  SequenceBlocks blocks;
  RecurrentSlots recurrent;

  // Returns the number of tokens, at most `count`, that a step may compute from position `first` on. A step
  // that would end within one of `wholes` ends before that range.
  int uncut(int first, int count) const {
    for (const auto& [begin, end] : spec.wholes)
      if (begin < first + count && first + count < end) return std::max(begin - first, 0);
    return count;
  }
  int length() const { return static_cast<int>(tokens.size()) + sampling; }
  // Returns the bytes of memory of the sequence, all of which is allocated when the sequence is added.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((tokens.capacity() + drafts.tokens.capacity()) * sizeof(TokenId) +
                                     (keys.capacity() + spec.extras.capacity()) * sizeof(Hash128) +
                                     spec.wholes.capacity() * sizeof(spec.wholes[0]) + blocks.bytes());
  }
  BlockHistory history() const { return {tokens, keys, spec.identity, spec.extras}; }
};

}  // namespace octavo
