// Matrices of quantize.h as the tensors that compressed-tensors stores.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/quantize.h"
#include "weights/safetensors_writer.h"

namespace octavo {

// The format of a checkpoint: its matrices are all in the one or all in the other.
enum class PackedLayout : std::uint8_t {
  int_quantized,   // int8, a signed byte each
  pack_quantized,  // int4 or int8, unsigned in words of 32 bits; int4 with zeros
};

// The tensors of a matrix of the module `name`, before it is there.
std::vector<TensorEntry> packed_entries(const std::string& name, std::int64_t rows, std::int64_t cols,
                                        Encoding encoding, PackedLayout layout);

// Their data, in the same order.
std::vector<std::vector<std::byte>> packed_bytes(const QuantizedMatrix& matrix, PackedLayout layout);

}  // namespace octavo
