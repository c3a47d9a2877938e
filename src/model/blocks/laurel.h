// Configuration (spec) and tensor names of Laurel.
#pragma once

#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Learned augmented residual layer (Gemma 3n, 2025): computes x + norm(W_right W_left x) in parallel to
// attention. See blocks/laurel.cc.
struct Laurel {
  int rank = 0;
  NormSpec norm = {};

  struct Names {
    std::string prefix = "laurel.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
