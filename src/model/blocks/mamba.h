// Configuration (spec) and tensor names of Mamba.
#pragma once

#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// A Mamba mixer (ChannelScanArgs). A projection of the input gives x and a gate. After the convolution, a
// projection of x gives dt (in low rank), b and c.
struct Mamba {
  int inner = 0;
  int state_dim = 0;
  int step_rank = 0;
  int conv_width = 0;
  bool conv_bias = false;
  bool bias = false;   // the first and the last projection have biases
  NormSpec norm = {};  // norm of dt, b and c

  struct Names {
    std::string prefix = "mamba.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
