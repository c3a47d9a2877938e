// An engine's options for its scheduler, from the options and the figures of what is loaded: no device, clock
// or file.
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

// Known once the model's files are read.
struct ModelPlanFigures {
  CacheLayout layout{};
  int max_model_len = 0;
  std::int64_t block_bytes = 0;  // of the stage that needs most
  std::int64_t state_bytes = 0;  // of a sequence, likewise
  bool pools = false;            // texts are read whole, not continued
  bool caches_prefixes = true;   // with pools
  std::uint64_t hash_seed = 0;   // of prefix hashes
};

// Known once weights and workspaces are in memory.
struct MemoryFigures {
  MemoryPlan memory{};                 // `useful` is planned here
  std::int64_t source_bytes = 0;       // of a sequence's sound or prompt
  std::int64_t draft_block_bytes = 0;  // of the draft model's blocks, as many as the model's
  int steps_in_flight = 1;
  int draft_states = 0;  // draft tokens of a step at most, where sequences have states
};

// All of it but the number of blocks and states: what workspaces are allocated for.
SchedulerOptions plan_step(const ModelPlanFigures& model, const EngineOptions& options);

// Adds the number of states and blocks, and with it the longest sequence: max_model_len of the options must
// fit, the model's own limit gives way. Errors: invalid_argument, naming kv_cache_memory_bytes.
Result<SchedulerOptions> plan_engine(const ModelPlanFigures& model, const MemoryFigures& memory,
                                     const EngineOptions& options);

// Memory of the device, of which other engines have their part.
MemoryPlan memory_of(const EngineOptions& options, const Device& device);

// Of pooling models: whether a text's numbers follow from its last token and cached tokens before it.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec);

// Whether the KV cache would have room for the longest text; otherwise texts are read without a cache.
bool holds_longest(const EngineOptions& options, const ModelPlanFigures& model, const MemoryPlan& memory);

}  // namespace octavo
