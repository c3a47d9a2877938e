// The work of one step as flat arrays. pack() makes them from a plan, and an executor runs them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "request/media_part.h"
#include "schedule/scheduler.h"

namespace octavo {

struct Batch {
  // [tokens] each
  std::vector<std::int32_t> ids;  // token ids; 0 if the token is in `pending`
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> types;  // token types; 1: second text of a prompt
  GridPositions axes{};  // positions on the axes of grid images; empty: `positions` on all axes. Not set by
                         // pack().

  // Tokens [query_starts[s], query_starts[s + 1]) belong to sequence s. After this step, its cache contains
  // lengths[s] tokens.
  std::vector<std::int32_t> query_starts;  // [sequences + 1]
  std::vector<std::int32_t> lengths;       // [sequences]
  std::vector<SequenceId> sequences;       // [sequences]
  std::vector<std::int32_t> state_slots;   // [sequences]: slot of the recurrent state
  std::vector<std::int32_t> state_copies;  // [tokens]: see StatePlan::copies; empty: no copies
  // Copy of one sequence's state between the slot of a running sequence and the slot of a saved state.
  struct StateCopy {
    std::int32_t from;
    std::int32_t to;
  };
  std::vector<StateCopy> restored_states;  // copies before the step
  std::vector<StateCopy> saved_states;     // copies after the step
  std::vector<std::int32_t> adapters;      // [sequences]: slots of LoRA adapters; -1: no adapter. Not set by
                                           // pack().

  // A token whose id the step in flight is still sampling.
  struct Pending {
    std::int32_t token;
    std::int32_t sequence;
  };
  std::vector<Pending> pending;

  // Tokens whose inputs are the rows [row, row + count) of an encoded image (MediaEncoder::begin_media).
  struct Image {
    std::int32_t token;
    std::int32_t count;
    std::int32_t place;
    std::int32_t row;
    std::int32_t sequence;
  };
  std::vector<Image> images;  // not set by pack()
  // [sequences], only for models with cross attention: slot of the sound or prompt
  // (MediaEncoder::begin_media). Not set by pack().
  std::vector<std::int32_t> sources;

  struct Group {
    std::vector<std::int32_t> tables;  // [sequences, table_stride]: block for each block_size positions
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [tokens]: cache slots for the keys and values of this step
  };
  std::vector<Group> groups;  // one per cache group

  int tokens() const { return static_cast<int>(ids.size()); }
};

// Writes the plan into `batch`; every step reuses its memory.
void pack(const StepPlan& plan, int group_count, int block_size, Batch& batch);

// Returns a batch for measurements: new sequences with the given numbers of tokens and arbitrary ids. They
// use blocks and states 0, 1, ...
Batch new_texts(std::span<const int> tokens, int group_count, int block_size, int vocab);

}  // namespace octavo
