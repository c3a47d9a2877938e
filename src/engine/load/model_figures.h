// Computes the figures of a model for the roofline estimate (timing/roofline.h).
#pragma once

#include "model/spec.h"
#include "timing/roofline.h"

namespace octavo {

// Assumes that weights, keys and values have two bytes per element, and that each step reads the weights of
// all experts.
ModelFigures model_figures(const ModelSpec& spec);

}  // namespace octavo
