// Loads a model's weights from the tensors of a checkpoint.
#pragma once

#include "model/model.h"
#include "model/weight_cache.h"
#include "weights/checkpoint.h"

namespace octavo {

// Sets model.activation, the members after it, and the values of all parameters. model.spec and
// model.max_model_len must be set, and model.network must have been checked against the checkpoint. Errors:
// corrupt if a number is not finite (the message names the tensor), and errors of the backend. If `cache` is
// not null, takes matrices from it, and adds all matrices to it.
Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      Model& model, WeightCache* cache);

// Loads parameters that are not in model.network. The network must have no layers, and its `plain` must be
// set.
Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      ParameterList parameters, Model& model);

}  // namespace octavo
