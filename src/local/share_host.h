#pragma once

#include "base/error.h"
#include "engine/load/placement.h"
#include "hub/settings.h"

namespace octavo {

// Assigns processors to each engine process, from the options and VLLM_CPU_OMP_THREADS_BIND. Does nothing
// under mpirun, which binds the processes itself. Errors name the flag.
Result<> take_processors(EngineOptions& engine, NumaOptions numa, const hub::Environment& environment);

}  // namespace octavo
