// Converts quantised matrices (quantize.h) to the tensors of compressed-tensors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/quantize.h"
#include "weights/safetensors_writer.h"

namespace octavo {

// Format of the packed matrices of a checkpoint.
enum class PackedLayout : std::uint8_t {
  int_quantized,   // int8, one signed byte for each number
  pack_quantized,  // int4 or int8, unsigned, in 32-bit words; int4 also has zeros
};

// Names and shapes of the tensors of module `name`'s matrix; known before the matrix is quantised.
std::vector<TensorEntry> packed_entries(const std::string& name, std::int64_t rows, std::int64_t cols,
                                        Encoding encoding, PackedLayout layout);

// Data of these tensors, in the same order.
std::vector<std::vector<std::byte>> packed_bytes(const QuantizedMatrix& matrix, PackedLayout layout);

}  // namespace octavo
