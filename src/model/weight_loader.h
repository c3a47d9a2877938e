// From a checkpoint's tensors to a model's prepared weights.
#pragma once

#include "model/model.h"
#include "model/parameters.h"
#include "weights/checkpoint.h"

namespace octavo {

// Checks that the checkpoint holds exactly these parameters, all finite, then fills model.activation and
// everything below it; model.spec and model.max_model_len are set.
Result<> load_weights(const Checkpoint& checkpoint, const Parameters& parameters, Backend& backend,
                      const LoadOptions& options, Model& model);

}  // namespace octavo
