// Reads from config.json how a checkpoint's matrices are quantised.
#pragma once

#include "model/config.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Reads quantization_config (compression_config in older files). quant_method may be gptq, awq,
// compressed-tensors, fp8, mxfp4 or modelopt. Lists of excluded modules are ignored, because the tensors show
// which matrices are quantised. Formats of activations are ignored too, except fp8 with fp8 matrices. Errors:
// unsupported (the message names the field) for a method, a number of bits or a layout that the engine cannot
// load.
Result<PackedFormat> packed_format(const Config& config);

// Returns the name in quant_method, or "none".
std::string_view name(Packing packing);

}  // namespace octavo
