// Assigns the host's processors to the processes of engines.
#pragma once

#include "base/error.h"
#include "engine/load/placement.h"
#include "hub/settings.h"

namespace octavo {

// Assigns processors to each engine process, as the options and VLLM_CPU_OMP_THREADS_BIND say. Under mpirun
// the processes are not bound, because mpirun binds them itself. Errors name the flag.
Result<> take_processors(EngineOptions& engine, NumaOptions numa, const hub::Environment& environment);

}  // namespace octavo
