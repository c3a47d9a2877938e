// Computes the scheduler's options from the user's options and the sizes of the loaded model. Uses no
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

// Sizes that are known after the files of the model are read.
struct ModelPlanFigures {
  CacheLayout layout{};
  int max_model_len = 0;
  std::int64_t block_bytes = 0;  // bytes of a block, in the pipeline stage with the largest blocks
  // bytes of a sequence's state, in the pipeline stage with the largest states
  std::int64_t state_bytes = 0;
  bool pools = false;           // pooling model, which computes each text in one step
  bool whole_prompts = false;   // one step computes all uncached tokens of a prompt
  bool caches_prefixes = true;  // pooling models only: whether prefixes are cached
  std::uint64_t hash_seed = 0;
};

// Sizes that are known after weights and workspaces are allocated.
struct MemoryFigures {
  MemoryPlan memory{};
  std::int64_t source_bytes = 0;  // bytes of one encoder input of cross attention
  // Bytes of one block of the draft model, which has the same number of blocks as the target model.
  std::int64_t draft_block_bytes = 0;
  int steps_in_flight = 1;
  int draft_states = 0;  // recurrent models only: maximum number of draft tokens in a step
};

// Plans everything except the numbers of blocks and states. The result determines the sizes of the
// workspaces.
SchedulerOptions plan_step(const ModelPlanFigures& model, const EngineOptions& options);

// Plans the numbers of blocks and states, and the maximum sequence length. If the user has set max_model_len,
// a sequence of this length must fit. Otherwise the limit of the model is reduced until a sequence fits.
// Returns invalid_argument on the field kv_cache_memory_bytes if the cache is too small.
Result<SchedulerOptions> plan_engine(const ModelPlanFigures& model, const MemoryFigures& memory,
                                     const EngineOptions& options);

// Returns this process's part of the memory of its device. The ranks and engines that share a device share
// its memory equally.
MemoryPlan memory_of(const EngineOptions& options, const Device& device);

// Pooling models only: returns true if the output depends only on the last token and the cached tokens.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec);

// Returns false if texts must be computed without a cache, because the longest text does not fit into the
// KV cache.
bool holds_longest(const EngineOptions& options, const ModelPlanFigures& model, const MemoryPlan& memory);

}  // namespace octavo
