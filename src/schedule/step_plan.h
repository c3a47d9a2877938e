// What one step of the engine does, and for whom.
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
  // Their ids. One fewer than count when the last one is still being sampled by the step in flight: the
  // executor takes it from there.
  std::span<const TokenId> tokens;
  bool last_pending = false;
  bool samples = false;  // the last token is the sequence's last: its logits give the next one
  // Draft tokens, computed behind it at positions first+count..: where they are accepted, the logits
  // of each give one token more.
  std::span<const TokenId> drafts;
  // Of recurrent layers, for each draft token: where the state before it is copied.
  std::span<const int> draft_states;
  int cached_tokens = 0;  // of the prompt, found in the prefix cache when the sequence was first admitted
  int second_text = kNoSecondText;         // SequenceSpec::second_text
  const SequenceBlocks* blocks = nullptr;  // tables, covering at least the positions up to end()
  int state_slot = kNoState;
  int state_from = kNoState;  // the saved state that it begins with
  int state_to = kNoState;    // where its state at end() is saved

  int end() const { return first + count + static_cast<int>(drafts.size()); }
};

// Spans and pointers are good until the scheduler is next called.
struct StepPlan {
  StepNumber step = 0;  // 0: nothing to do, nothing to collect
  std::vector<PlannedSequence> sequences;
  std::vector<SequenceId> preempted;  // lost their blocks and wait again
  int tokens = 0;                     // to compute, drafts included

  bool empty() const { return sequences.empty(); }
};

}  // namespace octavo
