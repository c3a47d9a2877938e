// The kinds of norm and activation, apart from ops.h so that code for special instruction sets can name them
// without including anything else.
#pragma once

#include <cstdint>

namespace octavo {

enum class NormKind : std::uint8_t { none, rms, layer };
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu };

}  // namespace octavo
