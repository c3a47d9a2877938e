// Configuration (spec) and tensor names of a dense MLP with parallel experts.
#pragma once

#include <string>

#include "model/blocks/experts.h"

namespace octavo {

class GgufLayers;

// A dense MLP and experts with separate norms. Their outputs are added (Gemma 4, 2026). See
// blocks/mlp_and_experts.cc.
struct MlpAndExperts {
  Mlp mlp;
  Experts experts;
  NormSpec norm = {};  // norm of the experts' input, and of both outputs

  struct Names {
    // Norms for the experts' input, for their output, and for the MLP's output.
    std::string norm = {};
    std::string post_norm = {};
    std::string mlp_post_norm = {};
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
