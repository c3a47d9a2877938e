// Loads simulated engines, which need only the config of the model, not its weights. The config determines
// the step times and the size of the cache.
#pragma once

#include <memory>

#include "engine/load/load.h"

namespace octavo {

// Call it if DeviceOptions::executor is not "local". Returns an error if its value, the model's config or
// the timing file is invalid.
Result<std::unique_ptr<Engine>> load_simulated(const EngineOptions& options, const LoadHooks& hooks);

}  // namespace octavo
