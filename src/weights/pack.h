// Converts quantised matrices (quantize.h) to tensors in the compressed-tensors format, so that a quantised
// model can be saved.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/quantize.h"
#include "weights/safetensors_writer.h"

namespace octavo {

enum class PackedLayout : std::uint8_t {
  int_quantized,   // int8, one signed byte per number
  pack_quantized,  // int4 or int8 as unsigned codes in 32-bit words; int4 also has zero points
};

// Returns the names and shapes of the tensors for the matrix of module `name`. They are known before the
// matrix is quantised.
std::vector<TensorEntry> packed_entries(const std::string& name, std::int64_t rows, std::int64_t cols,
                                        Encoding encoding, PackedLayout layout);

// Returns the data of the tensors that packed_entries() lists, in the same order.
std::vector<std::vector<std::byte>> packed_bytes(const QuantizedMatrix& matrix, PackedLayout layout);

}  // namespace octavo
