// Spec of Mamba2. Its tensor names are those of Mamba.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>

#include "model/norm_spec.h"

namespace octavo {

class Block;
class Namer;

// A Mamba2 mixer (ScanArgs). A projection of the input computes a gate, x, B, C and dt; x, B and C are
// convolved.
struct Mamba2 {
  int heads = 0;
  int head_dim = 0;
  int groups = 0;     // number of groups of heads that share B and C
  int state_dim = 0;  // number of state rows per head; a state is [state_dim, head_dim]
  int conv_width = 0;
  bool conv_bias = false;
  bool bias = false;  // whether the projections have biases
  float least_step = 0;
  float most_step = std::numeric_limits<float>::infinity();
  NormSpec norm = {};      // norm of the output of each group, if any
  bool gate_first = true;  // whether the gate is applied before the norm
  // Factors of the gate, x, B, C and dt.
  std::array<float, 5> multipliers = {1, 1, 1, 1, 1};

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
  // Returns the number of channels of the convolution.
  std::int64_t channels() const { return inner() + 2 * std::int64_t{groups} * state_dim; }
};

std::unique_ptr<Block> make_block(const Mamba2& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
