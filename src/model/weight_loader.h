// Prepares a model's weights from a checkpoint's tensors.
#pragma once

#include "model/model.h"
#include "weights/checkpoint.h"

namespace octavo {

// Fills model.activation, everything below it and the values of all parameters. model.spec and
// model.max_model_len are set, and model.network was checked against the checkpoint. Errors: corrupt if a
// tensor is not finite, with its name; or the backend's error.
Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      Model& model);

// The same of parameters that are not in model.network, which has no layers; its `plain` is set.
Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      ParameterList parameters, Model& model);

}  // namespace octavo
