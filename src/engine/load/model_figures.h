// Bytes and operations of a network, as input of a roofline model.
#pragma once

#include "model/spec.h"
#include "timing/roofline.h"

namespace octavo {

// Assumes weights and KV with two bytes per element, and that each step reads the weights of all experts.
ModelFigures model_figures(const ModelSpec& spec);

}  // namespace octavo
