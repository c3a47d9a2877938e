// Engines without a model's weights: the network determines the step times and the size of the cache.
#pragma once

#include <memory>

#include "engine/load/load.h"

namespace octavo {

// For `executor` values other than "local". Errors: the value, the network or the timing file is invalid.
Result<std::unique_ptr<Engine>> load_simulated(const EngineOptions& options, const LoadHooks& hooks);

}  // namespace octavo
