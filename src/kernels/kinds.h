// The kinds of norm, activation and pooling, apart from ops.h so that code for special instruction sets can
// name them without including anything else.
#pragma once

#include <cstdint>

namespace octavo {

enum class NormKind : std::uint8_t { none, rms, layer };
// relu_squared: the square of relu. swigluoai: gpt-oss's gate, always gated; xielu: Apertus's, never gated
// (ActivateArgs).
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
// What becomes a sequence's one vector: its first or last row, or the mean of all.
enum class Pool : std::uint8_t { first, last, mean };
// What becomes of a router's logits (RouterRule).
enum class RouterScores : std::uint8_t { softmax, sigmoid, sparsemixer };

}  // namespace octavo
