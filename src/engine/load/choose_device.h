// Selects the device on which an engine computes.
#pragma once

#include <functional>

#include "base/error.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"

namespace octavo {

// Checks that a GPU can run the model (model/support.h).
using CheckModel = std::function<Result<>(const Backend& gpu)>;

// Returns the backend of options.device. "auto" selects a GPU if it can run the model, otherwise the CPU; the
// log names the device and the reason. Returns invalid_argument if the device does not exist, unsupported if
// "auto" selects a GPU but there are several ranks, and errors of `check` that do not depend on the device.
Result<Backend> choose_device(const EngineOptions& options, const CheckModel& check);

}  // namespace octavo
