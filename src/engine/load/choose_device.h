// The device that an engine computes on.
#pragma once

#include "base/error.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"

namespace octavo {

// The backend of options.device; "auto" is a GPU where there is one, else the CPU, and the log says which and why.
// Errors: invalid_argument, no such device; unsupported, several ranks where auto is a GPU.
Result<Backend> choose_device(const EngineOptions& options);

// Whether device "auto" computes on the CPU after a GPU's backend has refused so: it cannot run the model. What an option
// asks for is no reason: its user decides what gives way.
bool falls_back(const Error& refusal);

}  // namespace octavo
