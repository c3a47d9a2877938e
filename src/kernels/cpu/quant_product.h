// A product y = x W^T + bias with a quantised matrix: the parts that products on vectors (quant_matmul.cc)
// and products on matrix tiles (tile_quant_matmul.cc) have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {

// Number of multiplications above which waking the other threads saves time.
constexpr std::int64_t kQuantWorthSharing = 1 << 19;

// x before it is quantised.
struct QuantSource {
  const std::byte* data;
  Format format;
  std::int64_t element_bytes;
  std::int64_t stride;       // bytes
  const std::int32_t* rows;  // null: row i of y uses row i of x
  std::int64_t cols;
  std::int64_t shared;  // groups that share a scale
  const std::byte* at(std::int64_t row, std::int64_t column) const {
    return data + (rows != nullptr ? rows[row] : row) * stride + column * element_bytes;
  }
};

// Writes the sums of a unit, in rows of c_stride floats. `first_row` is the row of y for the unit's row 0.
void write_quant_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantBand& band,
                      std::int64_t first_row, const MatmulUnit& unit, const float* c, std::int64_t c_stride);

std::size_t tile_quant_scratch_bytes(std::int64_t cols);
// Multiplies `rows` rows, from `first_row` on, with matrix tiles.
void tile_quant_matmul(CpuStream& stream, const MatmulArgs& args, const QuantSource& source,
                       const std::vector<QuantBand>& bands, std::int64_t first_row, std::int64_t rows,
                       std::byte* scratch);

}  // namespace octavo::cpu
