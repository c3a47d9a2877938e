// Decides whether an engine can use a KV cache that outlives its process (KeptCache), and maps the memory.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "engine/cache/kept_cache.h"
#include "engine/engine_options.h"
#include "engine/load/engine_plan.h"
#include "engine/load/load_model.h"
#include "kernels/ops.h"
#include "schedule/options.h"

namespace octavo {

// The kept memory of an earlier engine (KeptCache), before it is mapped.
class KeptPlan {
 public:
  // `descriptor` is LoadHooks::kept_memory. The memory is used if prefixes are cached and the blocks are in
  // the host memory of a single rank.
  KeptPlan(int descriptor, const EngineOptions& options, const LoadedModel& loaded, const Backend& backend);

  // Returns the bytes that the earlier engine's blocks occupy. The operating system does not count them as
  // available, but the blocks of this engine will use them.
  std::int64_t occupied_bytes() const;
  // Returns a plan with the number of blocks of an earlier engine with the same identity. Returns `planned`
  // if there is no such engine, or if the user has set the size of the cache. Also returns `planned` if the
  // two sizes differ by more than 10 %, because the earlier server had other options or another amount of
  // memory.
  SchedulerOptions keep_size(SchedulerOptions planned, const ModelPlanFigures& figures,
                             const MemoryFigures& memory, const EngineOptions& options) const;
  // Maps the memory and sets the seed of the prefix hash. `state_slots` is the number of slots of recurrent
  // states. The result is empty if the memory is not used.
  Result<KeptCache::Opened> open(SchedulerOptions& scheduler, int state_slots) const;

 private:
  int descriptor_ = -1;  // -1: the memory is not used
  KeptShape shape_;      // shape of the memory, without the numbers of blocks and states
};

}  // namespace octavo
