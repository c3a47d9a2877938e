// Reads the format of a checkpoint's quantised matrices from config.json.
#pragma once

#include "model/config.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Reads quantization_config (compression_config in older files): quant_method gptq, awq, compressed-tensors
// or fp8. Lists of excluded modules are ignored, because the tensors show which matrices are quantised.
// Formats of activations are also ignored: the CPU kernels quantise groups of 32 activations to int8 with a
// scale per group, or do not quantise them. Errors: unsupported, with the field, for a method, a number of
// bits or a layout that the engine cannot load.
Result<PackedFormat> packed_format(const Config& config);

// The packing's name in quant_method; or "none".
std::string_view name(Packing packing);

}  // namespace octavo
