// Bytes and operations of a model, for the roofline model (timing/roofline.h).
#pragma once

#include "model/spec.h"
#include "timing/roofline.h"

namespace octavo {

// Returns the numbers of a model. It assumes that weights, keys and values have two bytes per element, and
// that each step reads the weights of all experts.
ModelFigures model_figures(const ModelSpec& spec);

}  // namespace octavo
