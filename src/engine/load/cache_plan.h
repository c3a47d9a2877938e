// How large the KV cache is, and what of the scheduler's options follows from it and from the engine's.
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

// Without the numbers of blocks and states.
SchedulerOptions scheduler_options(const EngineOptions& options, const CacheLayout& layout, int max_model_len);

// The device's memory, of which other engines have their part.
MemoryPlan memory_of(const EngineOptions& options, const Device& device);

// Settles the number of states and blocks, and with it the longest sequence: one that was asked for must fit,
// the model's own limit gives way. Errors: invalid_argument, naming kv_cache_memory_bytes.
Result<> plan_cache(const EngineOptions& options, MemoryPlan memory, std::int64_t block_bytes,
                    std::int64_t state_bytes, std::int64_t source_bytes, SchedulerOptions& s);

// Of models whose last token says all that is asked of a text, and is all that they need to compute where
// what comes before it is cached.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec);

// Whether the KV cache would have room for the longest text; where it has not, texts are read without.
bool holds_longest(const EngineOptions& options, const Backend& backend, const CacheLayout& layout,
                   int max_model_len);

// Texts that are not continued: what of each is not cached is computed in one step, which is, without the
// prefix cache, all that needs its keys and values.
void read_whole_texts(SchedulerOptions& s, bool prefixes);

}  // namespace octavo
