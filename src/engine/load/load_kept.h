// The KV cache in memory that outlives the engine's process: whether an engine can use it, and how.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "engine/cache/kept_cache.h"
#include "engine/engine_options.h"
#include "engine/load/load_model.h"
#include "kernels/ops.h"
#include "schedule/options.h"

namespace octavo {

// Memory of an earlier engine, before it is mapped.
class KeptPlan {
 public:
  // descriptor: LoadHooks::kept_memory. The memory is used if the blocks are in host memory and belong to one
  // rank, and if prefixes are cached.
  KeptPlan(int descriptor, const EngineOptions& options, const LoadedModel& loaded, const Backend& backend);

  // Returns the bytes of memory that the earlier engine's blocks occupy. The system does not count them as
  // available, but this engine's blocks use them.
  std::int64_t occupied_bytes() const;
  // Returns the number of blocks of an earlier engine with the same identity; nullopt: none.
  std::optional<int> num_blocks() const;
  // Maps the memory, and sets the seed of the prefix keys. The result is empty if the memory is not used.
  // state_slots: number of slots of recurrent states.
  Result<KeptCache::Opened> open(SchedulerOptions& scheduler, int state_slots) const;

 private:
  int descriptor_ = -1;  // -1: the memory is not used
  KeptShape shape_;      // without the numbers of blocks and states
};

}  // namespace octavo
