// Format of a checkpoint's quantised matrices, according to config.json.
#pragma once

#include "model/config.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Reads quantization_config (compression_config in older files): quant_method gptq, awq, compressed-tensors
// or fp8. Lists of excluded modules are not read, since the checkpoint shows which matrices are quantised.
// Formats of activations are not read either: the CPU kernels quantise each 32 of them to int8 with a
// separate scale, or leave them as they are. Errors: unsupported, naming the field, for a method, a number
// of bits or a layout that the engine does not load.
Result<PackedFormat> packed_format(const Config& config);

// Name of the packing as in quant_method, or "none".
std::string_view name(Packing packing);

}  // namespace octavo
