// Configuration (spec) of Mamba2. The tensor names are the names of Mamba.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "model/norm_spec.h"

namespace octavo {

// A Mamba2 mixer (ScanArgs). A projection of the input gives a gate, x, B, C and dt. A convolution processes
// x, B and C.
struct Mamba2 {
  int heads = 0;
  int head_dim = 0;
  int groups = 0;     // the heads of a group share B and C
  int state_dim = 0;  // rows of a head's state, which is [state_dim, head_dim]
  int conv_width = 0;
  bool conv_bias = false;
  bool bias = false;  // the projections have biases
  float least_step = 0;
  float most_step = std::numeric_limits<float>::infinity();
  NormSpec norm = {};      // norm of each group's output
  bool gate_first = true;  // true: the gate is applied before the norm; false: after it
  // factors of the gate, x, B, C and dt
  std::array<float, 5> multipliers = {1, 1, 1, 1, 1};

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
  // Number of channels of the convolution.
  std::int64_t channels() const { return inner() + 2 * std::int64_t{groups} * state_dim; }
};

}  // namespace octavo
