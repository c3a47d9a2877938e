// Types of norm, activation and pooling. They are separate from ops.h, so that code for single instruction
// sets includes nothing else.
#pragma once

#include <cstdint>

namespace octavo {

// Types of norm (formulas: Norm). affine: only weight and bias.
enum class NormKind : std::uint8_t { none, rms, layer, affine };
// Activation functions. relu_squared: square of relu. swigluoai: always gated (gpt-oss). xielu: never gated
// (Apertus; see ActivateArgs).
enum class Activation : std::uint8_t {
  silu,
  gelu,
  gelu_tanh,
  relu,
  relu_squared,
  sigmoid,
  tanh,
  swigluoai,
  xielu
};
// How the rows of a sequence are combined to one vector (formulas: PoolArgs).
enum class Pool : std::uint8_t { first, last, mean, max, sum_by_root, weighted };
// Function from a router's logits to scores (RouterRule).
enum class RouterScores : std::uint8_t { softmax, sigmoid, sparsemixer, sqrt_softplus };

}  // namespace octavo
