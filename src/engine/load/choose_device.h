// Selects the device on which an engine computes. Called when an engine is loaded.
#pragma once

#include <functional>

#include "base/error.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"

namespace octavo {

// Returns an error if the GPU cannot run the model (model/support.h).
using CheckModel = std::function<Result<>(const Backend& gpu)>;

// Returns the backend of options.device. "auto" selects a GPU if a GPU can run the model, and otherwise the
// CPU. The log names the device and the reason. Process i of a host gets GPU i; if there are more processes
// than GPUs, several processes share a GPU. Returns invalid_argument if the device does not exist, and errors
// of `check` that do not depend on the device.
Result<Backend> choose_device(const EngineOptions& options, int rank, const CheckModel& check);

// Returns whether no two processes of this host share a device.
bool has_own_device(const EngineOptions& options, const Device& device);

}  // namespace octavo
