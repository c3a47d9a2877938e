// The work of one step as flat arrays. The engine loop fills a Batch from the scheduler's plan with pack(),
// and an executor runs it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "request/media_part.h"
#include "schedule/scheduler.h"

namespace octavo {

struct Batch {
  // Arrays with one element for each token.
  std::vector<std::int32_t> ids;  // 0 if the token is in `pending`
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> types;  // token types; 1: second text of a pair
  // Positions of the tokens of grid images on several RoPE axes. Empty: `positions` applies to all axes.
  // pack() does not set this array.
  GridPositions axes{};

  // Tokens [query_starts[s], query_starts[s + 1]) belong to sequence s. After this step, the cache contains
  // lengths[s] tokens of the sequence.
  std::vector<std::int32_t> query_starts;  // [sequences + 1]
  std::vector<std::int32_t> lengths;       // [sequences]
  std::vector<SequenceId> sequences;       // [sequences]
  std::vector<std::int32_t> state_slots;   // [sequences]: slot of the recurrent state
  std::vector<std::int32_t> state_copies;  // [tokens]: see StatePlan::copies; empty: no copies
  // Copies the recurrent state of one sequence between its slot and the slot of a saved state.
  struct StateCopy {
    std::int32_t from;
    std::int32_t to;
  };
  std::vector<StateCopy> restored_states;  // copies before the step
  std::vector<StateCopy> saved_states;     // copies after the step
  // [sequences]: slot of the LoRA adapter; -1: no adapter. pack() does not set this array.
  std::vector<std::int32_t> adapters;

  // A token whose id a step in flight is still sampling.
  struct Pending {
    std::int32_t token;
    std::int32_t sequence;
  };
  std::vector<Pending> pending;

  // Tokens whose inputs are the rows [row, row + count) of an encoded image (MediaEncoder::begin_media).
  struct Image {
    std::int32_t token;
    std::int32_t count;
    std::int32_t slot;
    std::int32_t row;
    std::int32_t sequence;
  };
  std::vector<Image> images;  // pack() does not set this array
  // Consecutive tokens of one sequence that see each other (WholeSpan). pack() does not set this array.
  struct Whole {
    std::int32_t token;
    std::int32_t count;
    std::int32_t sequence;
  };
  std::vector<Whole> wholes;
  // Models with cross attention only: [sequences], slot of the encoder input, which is a sound or a prompt
  // (MediaEncoder::begin_media). pack() does not set this array.
  std::vector<std::int32_t> sources;

  struct Group {
    std::vector<std::int32_t> tables;  // [sequences, table_stride]: block for each block_size positions
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [tokens]: cache slot for the keys and values of the token
  };
  std::vector<Group> groups;  // [cache group]

  int tokens() const { return static_cast<int>(ids.size()); }
};

// Writes the plan into `batch` and reuses its memory.
void pack(const StepPlan& plan, int group_count, int block_size, Batch& batch);

// Returns a batch for measurements. It has new sequences with the given numbers of tokens and arbitrary
// ids, which use blocks and states 0, 1, ..
Batch new_texts(std::span<const int> tokens, int group_count, int block_size, int vocab);

}  // namespace octavo
