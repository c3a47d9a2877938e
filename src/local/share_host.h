// Processors of the host for the processes of engines.
#pragma once

#include "base/error.h"
#include "engine/load/placement.h"
#include "hub/settings.h"

namespace octavo {

// Gives each process of the engines its processors, as the options and VLLM_CPU_OMP_THREADS_BIND say; mpirun
// binds its own. Errors name the flag.
Result<> take_processors(EngineOptions& engine, NumaOptions numa, const hub::Environment& environment);

}  // namespace octavo
