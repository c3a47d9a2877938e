// What a network moves and computes, as a roofline asks for it.
#pragma once

#include "model/spec.h"
#include "timing/roofline.h"

namespace octavo {

// Of weights and KV of two bytes an element. Of experts, all weights are taken to be read in every step.
ModelFigures model_figures(const ModelSpec& spec);

}  // namespace octavo
