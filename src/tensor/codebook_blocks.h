// Blocks of GGUF's IQ formats above IQ4_NL, and of its ternary formats, as codes and scales.
#pragma once

#include "tensor/dequantize.h"

namespace octavo {

// `block`: prepared by take_apart(); its codes are 0, its scales 1.
void take_codebook_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block);

}  // namespace octavo
