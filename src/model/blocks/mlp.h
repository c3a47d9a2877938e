// Configuration of an MLP block. The names of its tensors are in MlpNames (model/names.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

struct Mlp {
  int hidden = 0;
  Activation activation = Activation::silu;
  bool gated = true;
  bool up_bias = false;  // gate and up have biases
  bool down_bias = false;
  float alpha = 1;  // parameter of swigluoai
  // Limit of swigluoai. For other activations, a limit above 0 clips gates to at most `limit`, and the values
  // that they multiply to [-limit, limit].
  float limit = 0;
  float gate_limit = 0;  // limit of gates; 0: equal to `limit`
  // Multiplies the activation's input; swigluoai ignores it. If the factor is not 1, an ungated MLP gates
  // itself: quick_gelu is x * sigmoid(1.702 x).
  float gate_scale = 1;
  // KeepTailArgs::deviations: only the largest gates stay above 0; nullopt: all gates stay
  std::optional<float> tail = {};
  // parameters of xIELU; nullopt: they are in the checkpoint (MlpNames::slopes)
  std::optional<std::array<float, 2>> slopes = {};

  // Norm of the gated values. It has no stored weight, and only a gated MLP may have it.
  NormSpec hidden_norm = {};
  // If not 0, the rows of gate and up are multiplied by this factor and by the vectors MlpNames::up_scales.
  float row_scale = 0;

  std::int64_t up_dim() const { return gated ? 2 * std::int64_t{hidden} : hidden; }
};

}  // namespace octavo
