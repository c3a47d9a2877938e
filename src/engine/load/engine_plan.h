// Computes the scheduler's options from the user's options and the sizes of the loaded model. It uses no
// device, clock or file.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "engine/engine_options.h"
#include "engine/load/memory_plan.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "model/spec.h"
#include "schedule/options.h"

namespace octavo {

// Sizes that are known after the model's files are read.
struct ModelPlanFigures {
  CacheLayout layout{};
  int max_model_len = 0;
  std::int64_t block_bytes = 0;  // bytes of a block, in the pipeline stage with the largest blocks
  std::int64_t state_bytes = 0;  // bytes of a sequence's state, in the pipeline stage with the largest states
  bool pools = false;            // whether this is a pooling model, which reads each text in one step
  bool caches_prefixes = true;   // whether prefixes are cached; ignored unless `pools`
  std::uint64_t hash_seed = 0;
};

// Sizes that are known after weights and workspaces are in memory.
struct MemoryFigures {
  MemoryPlan memory{};            // plan_engine() sets `useful`
  std::int64_t source_bytes = 0;  // bytes for one sequence's sound or prompt in cross attention
  // Bytes of one block of the draft model, which has the same number of blocks as the model.
  std::int64_t draft_block_bytes = 0;
  int steps_in_flight = 1;
  int draft_states = 0;  // maximum number of draft tokens in a step, if there are states
};

// Plans everything except the number of blocks and states. The sizes of workspaces follow from this
// plan.
SchedulerOptions plan_step(const ModelPlanFigures& model, const EngineOptions& options);

// Adds the number of blocks and states, and the maximum sequence length. An explicit max_model_len must fit;
// without it, the model's own limit is lowered until it fits. Returns invalid_argument for
// kv_cache_memory_bytes.
Result<SchedulerOptions> plan_engine(const ModelPlanFigures& model, const MemoryFigures& memory,
                                     const EngineOptions& options);

// Returns this engine's part of the device's memory, which it shares with the server's other engines.
MemoryPlan memory_of(const EngineOptions& options, const Device& device);

// Only for pooling models: returns true if the output depends only on the last token and the cached tokens
// before it.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec);

// Returns true if the longest text fits into the KV cache. Otherwise texts are read without a cache.
bool holds_longest(const EngineOptions& options, const ModelPlanFigures& model, const MemoryPlan& memory);

}  // namespace octavo
