// Kinds of norm, activation and pooling. They are not in ops.h, so that source files for one instruction
// set include nothing else.
#pragma once

#include <cstdint>

namespace octavo {

// Norm (operators/rows.h) has the formulas.
enum class NormKind : std::uint8_t { none, rms, layer, affine };
// relu_squared is the square of relu. swigluoai is always gated (gpt-oss). xielu is never gated (Apertus;
// ActivateArgs has the formula).
enum class Activation : std::uint8_t {
  silu,
  gelu,
  gelu_tanh,
  relu,
  relu_squared,
  sigmoid,
  tanh,
  softplus,
  swigluoai,
  xielu
};
// How the rows of a sequence are combined to one vector. PoolArgs has the formulas.
enum class Pool : std::uint8_t { first, last, mean, max, sum_by_root, weighted };
// Function from a router's logits to scores (RouterRule).
enum class RouterScores : std::uint8_t { softmax, sigmoid, sparsemixer, sqrt_softplus };

}  // namespace octavo
