// From a checkpoint's tensors to a model's prepared weights.
#pragma once

#include "model/model.h"
#include "model/parameters.h"
#include "weights/checkpoint.h"

namespace octavo {

// Fills model.activation and everything below it; model.spec and model.max_model_len are set, and
// `parameters` has been checked against the checkpoint. Errors: corrupt, naming the tensor, when one is not
// finite; whatever the backend says.
Result<> load_weights(const Checkpoint& checkpoint, const Parameters& parameters, Backend& backend,
                      const LoadOptions& options, Model& model);

}  // namespace octavo
