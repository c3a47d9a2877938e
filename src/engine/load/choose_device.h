// The device that an engine computes on.
#pragma once

#include <functional>

#include "base/error.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"

namespace octavo {

// Whether a GPU can run the model (model/support.h).
using CheckModel = std::function<Result<>(const Backend& gpu)>;

// The backend of options.device. "auto": a GPU that can run the model, else the CPU; the log names the device
// and the reason. Errors: invalid_argument, the device does not exist; unsupported, several ranks where auto
// is a GPU; those of `check` that are not about the device.
Result<Backend> choose_device(const EngineOptions& options, const CheckModel& check);

}  // namespace octavo
