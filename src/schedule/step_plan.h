// The work of one step, by sequence.
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
  int count = 0;          // tokens to compute, at positions first .. first+count-1
  // Their ids. One fewer than count if a step in flight is still sampling the last one: the executor reads it
  // from there.
  std::span<const TokenId> tokens;
  bool last_pending = false;
  bool samples = false;  // the last token is the sequence's last: its logits give the next one
  // Draft tokens, computed at positions first+count..: the logits of each accepted one give one more token.
  std::span<const TokenId> drafts;
  // Recurrent layers: slot for the state before each draft token.
  std::span<const int> draft_states;
  int cached_tokens = 0;                   // prompt tokens found in the prefix cache at the first admission
  int second_text = kNoSecondText;         // SequenceSpec::second_text
  const SequenceBlocks* blocks = nullptr;  // tables, covering at least the positions up to end()
  int state_slot = kNoState;
  int state_from = kNoState;  // the saved state that it begins with
  int state_to = kNoState;    // slot for its state at end()

  int end() const { return first + count + static_cast<int>(drafts.size()); }
};

// Spans and pointers are valid until the next call of the scheduler.
struct StepPlan {
  StepNumber step = 0;  // 0: nothing to do, nothing to collect
  std::vector<PlannedSequence> sequences;
  std::vector<SequenceId> preempted;  // lost their blocks and wait again
  int tokens = 0;                     // to compute, drafts included

  bool empty() const { return sequences.empty(); }
};

}  // namespace octavo
