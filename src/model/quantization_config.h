// Reads the format of a checkpoint's quantised matrices from config.json.
#pragma once

#include "model/config.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Reads quantization_config (compression_config in older files): quant_method gptq, awq, compressed-tensors
// or fp8. It ignores lists of excluded modules, because the tensors show which matrices are quantised. It
// also ignores formats of activations: the CPU kernels quantise groups of 32 activations to int8 with a scale
// per group, or do not quantise them. Returns unsupported, with the field, for a method, a number of bits or
// a layout that the engine cannot load.
Result<PackedFormat> packed_format(const Config& config);

// Returns the name of the packing in quant_method, or "none".
std::string_view name(Packing packing);

}  // namespace octavo
