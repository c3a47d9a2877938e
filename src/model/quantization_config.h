// What config.json says of a checkpoint's quantised matrices.
#pragma once

#include "model/config.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Reads quantization_config (compression_config in older files): quant_method gptq, awq, compressed-tensors
// or fp8. Which matrices are quantised, the checkpoint itself says, so that lists of modules to leave out are
// not read. How activations were quantised is not read either: the CPU kernels give each 32 of them an int8
// scale of its own, or leave them as they are. Errors: unsupported, naming the field, for a method, a number
// of bits or a layout that the engine does not load.
Result<PackedFormat> packed_format(const Config& config);

// As quant_method says it; "none".
std::string_view name(Packing packing);

}  // namespace octavo
