// The work of one step: the tokens of each sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/sequence.h"

namespace octavo {

using StepNumber = std::uint64_t;

struct PlannedSequence {
  SequenceId sequence{};
  std::uint64_t tag = 0;  // SequenceSpec::tag
  int first = 0;          // position of the first token
  int count = 0;          // number of tokens to compute, at positions first .. first + count - 1
  // Ids of these tokens. If last_pending, the last id is missing: a step in flight is still sampling it,
  // and the executor takes it from there.
  std::span<const TokenId> tokens;
  bool last_pending = false;
  bool samples = false;  // true: the step ends at its last known token, so it samples the next
  // Draft tokens, at positions from first + count on. The logits of each accepted one give one more
  // token.
  std::span<const TokenId> drafts;
  // Only with recurrent layers: slots for the states before each draft token.
  std::span<const int> draft_states;
  int cached_tokens = 0;                   // prompt tokens in the cache at first admission
  int second_text = kNoSecondText;         // SequenceSpec::second_text
  const SequenceBlocks* blocks = nullptr;  // block tables that cover at least the positions up to end()
  int state_slot = kNoState;
  int state_from = kNoState;  // slot of the saved state to start from
  int state_to = kNoState;    // slot for the state at end()

  int end() const { return first + count + static_cast<int>(drafts.size()); }
};

// Spans and pointers are valid until the next call to the scheduler.
struct StepPlan {
  StepNumber step = 0;  // number of the step; 0: the plan is empty, and there is nothing to collect
  std::vector<PlannedSequence> sequences;
  std::vector<SequenceId> preempted;  // sequences that lost their blocks and wait again
  int tokens = 0;                     // number of tokens to compute, including draft tokens

  bool empty() const { return sequences.empty(); }
};

}  // namespace octavo
