// Computes the scheduler's options from the user's options and the loaded model's figures. Uses no device,
// clock or file.
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

// Figures known after the model's files are read.
struct ModelPlanFigures {
  CacheLayout layout{};
  int max_model_len = 0;
  std::int64_t block_bytes = 0;  // bytes of a block, in the stage that needs most
  std::int64_t state_bytes = 0;  // bytes of a sequence's state, in the stage that needs most
  bool pools = false;            // a pooling model: texts are read whole
  bool caches_prefixes = true;   // used if `pools`
  std::uint64_t hash_seed = 0;   // seed of prefix hashes
};

// Figures known after weights and workspaces are in memory.
struct MemoryFigures {
  MemoryPlan memory{};            // `useful` is filled in here
  std::int64_t source_bytes = 0;  // bytes for a sequence's sound or prompt
  // Bytes of one block of the draft model; it has the same number of blocks as the model.
  std::int64_t draft_block_bytes = 0;
  int steps_in_flight = 1;
  int draft_states = 0;  // maximum draft tokens of a step, for sequences with states
};

// Plans everything except the number of blocks and states. Workspaces are allocated by this plan.
SchedulerOptions plan_step(const ModelPlanFigures& model, const EngineOptions& options);

// Adds the number of states and blocks, and the maximum sequence length. An explicit max_model_len must fit;
// the model's own limit is lowered if needed. Errors: invalid_argument, naming kv_cache_memory_bytes.
Result<SchedulerOptions> plan_engine(const ModelPlanFigures& model, const MemoryFigures& memory,
                                     const EngineOptions& options);

// Memory of the device, shared with the other engines.
MemoryPlan memory_of(const EngineOptions& options, const Device& device);

// For pooling models: true if the output depends only on the last token and the cached tokens before it.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec);

// True if the KV cache can hold the longest text. Otherwise texts are read without a cache.
bool holds_longest(const EngineOptions& options, const ModelPlanFigures& model, const MemoryPlan& memory);

}  // namespace octavo
