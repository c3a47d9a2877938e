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
  std::uint64_t tag = 0;  // see SequenceSpec::tag
  int first = 0;          // position of the first token
  int count = 0;          // number of tokens to compute, at positions first .. first + count - 1
  // Ids of these tokens. If last_pending, the last id is missing, because a step in flight is still sampling
  // it; the executor takes it from that step.
  std::span<const TokenId> tokens;
  bool last_pending = false;
  bool samples = false;  // whether the step computes the last known token of the sequence, so that it samples
                         // the next one
  // Draft tokens, at positions from first + count on. The logits of each accepted draft token give one more
  // token.
  std::span<const TokenId> drafts;
  // Slots for the states before each draft token; only with recurrent layers.
  std::span<const int> draft_states;
  int cached_tokens = 0;                   // number of prompt tokens that were cached at the first admission
  int second_text = kNoSecondText;         // see SequenceSpec::second_text
  const SequenceBlocks* blocks = nullptr;  // block tables, which cover at least the positions up to end()
  int state_slot = kNoState;
  int state_from = kNoState;  // slot of the saved state from which the sequence starts
  int state_to = kNoState;    // slot for the state at end()

  int end() const { return first + count + static_cast<int>(drafts.size()); }
};

// Plan of one step. Spans and pointers are valid until the next call of the scheduler.
struct StepPlan {
  StepNumber step = 0;  // number of the step; 0: the plan is empty and is not collected
  std::vector<PlannedSequence> sequences;
  std::vector<SequenceId> preempted;  // sequences that lost their blocks and wait again
  int tokens = 0;                     // number of tokens to compute, including draft tokens

  bool empty() const { return sequences.empty(); }
};

}  // namespace octavo
