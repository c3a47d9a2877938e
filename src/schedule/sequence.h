// One answer in the making, as the scheduler keeps it.
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

// Names a sequence from add() to finish(), and nothing afterwards: slot in the low half, generation of the
// slot in the high half.
enum class SequenceId : std::uint64_t {};

inline std::uint32_t slot(SequenceId id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
}

inline constexpr int kNoSecondText = std::numeric_limits<int>::max();

// What add() is told. A request with n answers is n of these with one prompt.
struct SequenceSpec {
  std::span<const TokenId> prompt;    // copied
  std::span<const TokenId> output{};  // generated before; copied
  int max_total_tokens = 0;           // prompt and answer
  std::int64_t priority = 0;          // lower goes first under Policy::priority
  Hash128 identity = {};              // cached prefixes are shared among equal ones only (CacheIdentity)
  bool read_prefix_cache = true;      // false: every prompt position is computed (prompt logprobs)
  std::uint64_t tag = 0;              // the caller's own; comes back in every plan
  int second_text = kNoSecondText;    // its first position; comes back, too
  std::vector<Hash128> extras{};      // media_identities of the prompt
  // Behind which position the prefix cache keeps the state of recurrent layers in any case, a multiple of the block
  // size; 0: where it thinks best.
  int checkpoint = 0;
  // Positions of the prompt, [first, end) each, ascending, that one step computes up to the end: those of
  // images whose tokens see each other. None is longer than a step.
  std::vector<std::pair<int, int>> wholes{};
};

struct Sequence {
  enum class State : std::uint8_t { unused, waiting, running };

  State state = State::unused;
  bool read_prefix_cache = true;
  bool parked = false;           // Scheduler::park
  bool non_preemptible = false;  // admitted with a promise of all blocks it can ever want; never a victim
  std::uint32_t generation = 0;  // how many sequences have had this slot
  std::uint64_t tag = 0;
  std::uint64_t arrival = 0;  // how many sequences came before
  std::int64_t priority = 0;
  Hash128 identity;
  int max_total_tokens = 0;
  int prompt_tokens = 0;
  int second_text = kNoSecondText;

  // Positions [0, computed) are known to be in the cache, [computed, planned) are being written by steps in
  // flight. The last `sampling` tokens of the sequence are being sampled by those steps: their place is
  // known, their id is not.
  int computed = 0;
  int planned = 0;
  int sampling = 0;
  bool drafting = false;  // draft tokens are on the way, too: what comes next depends on them
  int promised = 0;       // length up to which blocks are kept free for it
  int preemptions = 0;
  int starts_over = 0;          // times that it lost its memory: preemptions, and Scheduler::retract
  int cached_tokens = 0;        // of the prompt, found in the cache at the first admission
  int match_blocks = 0;         // longest_prefix: cached blocks when last looked up
  std::uint64_t last_step = 0;  // the last one that it had a part in

  std::vector<TokenId> tokens;              // prompt and answer
  std::vector<TokenId> drafts;              // proposed to follow them, for the next step
  std::vector<Hash128> keys;                // of its full blocks
  std::vector<Hash128> extras;              // SequenceSpec::extras
  std::vector<std::pair<int, int>> wholes;  // SequenceSpec::wholes
  SequenceBlocks blocks;
  int state_slot = kNoState;  // while it runs; of recurrent layers
  // While draft tokens are on the way, where the states before each of them are copied; then those behind the tokens
  // that may be committed next.
  std::vector<int> draft_states;
  int checkpoint = 0;  // SequenceSpec::checkpoint
  int branch = 0;      // where it leaves a prefix whose blocks were there without a state; 0: nowhere

  // How many of `count` tokens from `first` on a step may compute: none that belongs to a whole whose end it
  // leaves out.
  int uncut(int first, int count) const {
    for (const auto& [begin, end] : wholes)
      if (begin < first + count && first + count < end) return std::max(begin - first, 0);
    return count;
  }
  int length() const { return static_cast<int>(tokens.size()) + sampling; }
  // Memory, all of it taken when the sequence is added.
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((tokens.capacity() + drafts.capacity()) * sizeof(TokenId) +
                                     (keys.capacity() + extras.capacity()) * sizeof(Hash128) +
                                     wholes.capacity() * sizeof(wholes[0]) + blocks.bytes());
  }
  BlockHistory history() const { return {tokens, keys, identity, extras}; }
};

}  // namespace octavo
