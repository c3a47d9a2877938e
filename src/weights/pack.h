// Converts matrices of quantize.h to the tensors of compressed-tensors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/quantize.h"
#include "weights/safetensors_writer.h"

namespace octavo {

// A checkpoint's format; all its matrices use the same one.
enum class PackedLayout : std::uint8_t {
  int_quantized,   // int8, one signed byte each
  pack_quantized,  // int4 or int8, unsigned in 32-bit words; int4 with zeros
};

// The tensors of module `name`'s matrix, before it is computed.
std::vector<TensorEntry> packed_entries(const std::string& name, std::int64_t rows, std::int64_t cols,
                                        Encoding encoding, PackedLayout layout);

// Their data, in the same order.
std::vector<std::vector<std::byte>> packed_bytes(const QuantizedMatrix& matrix, PackedLayout layout);

}  // namespace octavo
