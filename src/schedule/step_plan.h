// The plan of one step: the scheduler writes it, and the executor computes it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/sequence.h"

namespace octavo {

using StepNumber = std::uint64_t;

struct PlannedSequence {
  SequenceId sequence{};
  std::uint64_t tag = 0;  // see SequenceSpec::tag
  int first = 0;
  int count = 0;  // number of tokens, at positions first .. first + count - 1
  // If last_pending is set, `tokens` does not contain the last of the `count` tokens, because a step in
  // flight is still sampling it. The executor takes it from that step.
  std::span<const TokenId> tokens;
  bool last_pending = false;
  // True if the step computes the last known token of the sequence, and so samples the next one.
  bool samples = false;
  // Draft tokens at positions from first + count on. The logits of each accepted draft token give one more
  // output token.
  std::span<const TokenId> drafts;
  // Slots of the recurrent states before each draft token. Empty without recurrent layers.
  std::span<const int> draft_states;
  int cached_tokens = 0;                   // prompt tokens that were cached at the first admission
  int second_text = kNoSecondText;         // see SequenceSpec::second_text
  const SequenceBlocks* blocks = nullptr;  // block tables, which cover at least the positions before end()
  int state_slot = kNoState;
  int state_from = kNoState;  // slot of the saved state from which the sequence starts
  int state_to = kNoState;    // slot in which the state at end() is saved

  int end() const { return first + count + static_cast<int>(drafts.size()); }
};

// Spans and pointers are valid until the scheduler is called again.
struct StepPlan {
  StepNumber step = 0;  // 0: the plan is empty and must not be collected
  std::vector<PlannedSequence> sequences;
  std::vector<SequenceId> preempted;  // sequences that lost their blocks and wait again
  int tokens = 0;                     // number of tokens, including draft tokens

  bool empty() const { return sequences.empty(); }
};

}  // namespace octavo
