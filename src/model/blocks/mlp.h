// The MLP.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/kinds.h"

namespace octavo {

class Block;
class Namer;

struct Mlp {
  int hidden = 0;
  Activation activation = Activation::silu;
  bool gated = true;
  bool up_bias = false;  // of gate and up
  bool down_bias = false;
  float alpha = 1;  // of swigluoai
  // Of swigluoai. Of others, above 0: gates are cut above it, and what they are multiplied with on both
  // sides.
  float limit = 0;
  float gate_limit = 0;  // of gates alone, in place of limit; 0: it is the same
  // Of what goes into a gate's activation; not of swigluoai. Where it is not 1, what has no gate is its own:
  // quick_gelu is x * sigmoid(1.702 x).
  float gate_scale = 1;
  std::optional<float> tail = {};  // KeepTailArgs::deviations: of gates, no more goes into the activation
  std::optional<std::array<float, 2>> slopes = {};  // of xielu; nothing: the checkpoint has Names::slopes

  std::int64_t up_dim() const { return gated ? 2 * std::int64_t{hidden} : hidden; }
};

std::unique_ptr<Block> make_block(const Mlp& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
