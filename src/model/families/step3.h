// Functions for StepFun's models.
#pragma once

#include <vector>

#include "model/config.h"
#include "model/names.h"

namespace octavo {

// Returns for each layer whether it has experts, from mlp_layer_types or moe_layers_enum. If both fields are
// missing, all layers except the first have experts.
Result<std::vector<bool>> step3_expert_layers(const Config& config, std::size_t layers);

void set_step3_names(Names& names);

}  // namespace octavo
