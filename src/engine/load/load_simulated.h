// Engines without a model's weights. The model's config determines the step times and the size of the
// cache.
#pragma once

#include <memory>

#include "engine/load/load.h"

namespace octavo {

// Loads an engine if `executor` is not "local". Returns an error if the value, the model's config or the
// timing file is invalid.
Result<std::unique_ptr<Engine>> load_simulated(const EngineOptions& options, const LoadHooks& hooks);

}  // namespace octavo
