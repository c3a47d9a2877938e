// The work of one step as flat arrays: pack() makes it from a plan, and an executor runs it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "request/media_part.h"
#include "schedule/scheduler.h"

namespace octavo {

struct Batch {
  // [tokens]
  std::vector<std::int32_t> ids;  // 0 if pending
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> types;  // 1: second text of a prompt
  GridPositions
      axes{};  // positions beside grid images; empty: `positions` on each axis. Not filled by pack()

  // Tokens [query_starts[s], query_starts[s + 1]) belong to sequence s, whose cache reaches lengths[s] after
  // this step.
  std::vector<std::int32_t> query_starts;  // [sequences + 1]
  std::vector<std::int32_t> lengths;       // [sequences]
  std::vector<SequenceId> sequences;       // [sequences]
  std::vector<std::int32_t> state_slots;   // [sequences]: slot of the state
  std::vector<std::int32_t> state_copies;  // [tokens]: StatePlan::copies; empty: none
  // Copy of one sequence's state between the slots of running sequences and those of saved states.
  struct StateCopy {
    std::int32_t from;
    std::int32_t to;
  };
  std::vector<StateCopy> restored_states;  // before the step
  std::vector<StateCopy> saved_states;     // after the step
  std::vector<std::int32_t> adapters;  // [sequences]: slots of LoRA adapters; -1: none. Not filled by pack()

  // Token whose id the step in flight is still sampling.
  struct Pending {
    std::int32_t token;
    std::int32_t sequence;
  };
  std::vector<Pending> pending;

  // Tokens for rows [row, row + count) of an encoded image (MediaEncoder::begin_media).
  struct Image {
    std::int32_t token;
    std::int32_t count;
    std::int32_t place;
    std::int32_t row;
    std::int32_t sequence;
  };
  std::vector<Image> images;  // Not filled by pack()
  // [sequences], for models with cross attention: slot of the sound or prompt (MediaEncoder::begin_media).
  // Not filled by pack()
  std::vector<std::int32_t> sources;

  struct Group {
    std::vector<std::int32_t> tables;  // [sequences, table_stride]: block of each block_size positions
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [tokens]: cache slots for the keys and values of this step
  };
  std::vector<Group> groups;  // one per cache group

  int tokens() const { return static_cast<int>(ids.size()); }
};

// Writes the plan into `batch`, whose memory is reused in each step.
void pack(const StepPlan& plan, int group_count, int block_size, Batch& batch);

// Batch for measurements: new texts with the given numbers of tokens, arbitrary ids, and blocks and states 0,
// 1, ...
Batch new_texts(std::span<const int> tokens, int group_count, int block_size, int vocab);

}  // namespace octavo
