// One step's work as flat arrays: what pack() makes of a plan and an executor runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "request/media_part.h"
#include "schedule/scheduler.h"

namespace octavo {

struct Batch {
  // [tokens]
  std::vector<std::int32_t> ids;  // 0 where pending
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> types;  // 1: of a prompt's second text
  GridPositions
      axes{};  // beside images that are grids; empty: `positions` on each axis. Not filled by pack()

  // Tokens [query_starts[s], query_starts[s + 1]) belong to sequence s, whose cache reaches lengths[s] after
  // this step.
  std::vector<std::int32_t> query_starts;  // [sequences + 1]
  std::vector<std::int32_t> lengths;       // [sequences]
  std::vector<SequenceId> sequences;       // [sequences]
  std::vector<std::int32_t> state_slots;   // [sequences]: where each one's state is
  std::vector<std::int32_t> state_copies;  // [tokens]: StatePlan::copies; empty: none
  // Of one sequence's state, between the slots of running sequences and those of saved states.
  struct StateCopy {
    std::int32_t from;
    std::int32_t to;
  };
  std::vector<StateCopy> restored_states;  // before the step
  std::vector<StateCopy> saved_states;     // behind it
  std::vector<std::int32_t> adapters;  // [sequences]: places of LoRA adapters; -1: none. Not filled by pack()

  // Tokens whose id the step in flight is still sampling, for the sequence they belong to.
  struct Pending {
    std::int32_t token;
    std::int32_t sequence;
  };
  std::vector<Pending> pending;

  // Tokens that stand for rows [row, row + count) of an encoded image (MediaEncoder::begin_media).
  struct Image {
    std::int32_t token;
    std::int32_t count;
    std::int32_t place;
    std::int32_t row;
    std::int32_t sequence;
  };
  std::vector<Image> images;  // Not filled by pack()
  // [sequences], of models with cross attention: the place of each one's sound or prompt
  // (MediaEncoder::begin_media). Not filled by pack()
  std::vector<std::int32_t> sources;

  struct Group {
    std::vector<std::int32_t> tables;  // [sequences, table_stride]: block of each block_size positions
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [tokens]: where this step's keys and values go
  };
  std::vector<Group> groups;  // one a cache group

  int tokens() const { return static_cast<int>(ids.size()); }
};

// Lays the plan out in `batch`, whose memory is reused from step to step.
void pack(const StepPlan& plan, int group_count, int block_size, Batch& batch);

// Texts of so many tokens each, from their first token on, for steps that measure: any ids, in blocks and
// states 0, 1 ..
Batch new_texts(std::span<const int> tokens, int group_count, int block_size, int vocab);

}  // namespace octavo
