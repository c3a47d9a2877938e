// Unpacks the blocks of GGUF's formats with codebooks (IQ1, IQ2, IQ3) and of its ternary formats (TQ1,
// TQ2).
#pragma once

#include "tensor/dequantize.h"

namespace octavo {

// Fills in `codes` and `scales` of `block`. The caller must have set all `scales` to 1, for formats without
// them.
void take_codebook_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block);

}  // namespace octavo
