// The device that an engine computes on.
#pragma once

#include <functional>

#include "base/error.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"

namespace octavo {

// Checks that a GPU can run the model (model/support.h).
using CheckModel = std::function<Result<>(const Backend& gpu)>;

// Returns the backend of options.device. "auto": a GPU if it can run the model, else the CPU; the log
// names the device and the reason. Errors: invalid_argument, the device does not exist; unsupported, "auto"
// chose a GPU but there are several ranks; errors of `check` that do not depend on the device.
Result<Backend> choose_device(const EngineOptions& options, const CheckModel& check);

}  // namespace octavo
