// Functions for StepFun's models.
#pragma once

#include <vector>

#include "model/blocks/mlp.h"
#include "model/config.h"
#include "model/names.h"

namespace octavo {

// Returns for each layer whether it has experts, from mlp_layer_types or moe_layers_enum. If both fields are
// missing, all layers except the first have experts.
Result<std::vector<bool>> step3_expert_layers(const Config& config, std::size_t layers);

void set_step3_names(Names& names);

// Limits the output of silu, and the values that it multiplies; 0: no limit.
void set_silu_limit(Mlp& mlp, double limit);

}  // namespace octavo
