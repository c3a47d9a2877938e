// A product y = x W^T + bias with an unquantised matrix: the parts that products with few rows (matmul.cc)
// and products with many rows on matrix tiles (tile_matmul.cc) have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/matrix_tiles.h"

namespace octavo::cpu {

// Number of bf16 steps that matrix tiles process at a time. This range of a panel (16 KB) and the same range
// of one tile of x fit into the L1 cache together, so the panel's range is read from L2 only once. The buffer
// for converted 8-bit weights has the same number of steps.
constexpr std::int64_t kMatrixStretch = 128;
static_assert(kTileRows == 2 * kMatrixRows);
constexpr std::int64_t kMostWidth = 32;
constexpr std::int64_t kMatrixStepBytes = 4 * kMostWidth;
// Number of multiplications above which waking the other threads saves time.
constexpr std::int64_t kWorthSharing = 1 << 18;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

struct PanelProduct {
  const MatmulArgs& args;
  const std::int32_t* x_rows;  // null: row i of y uses row i of x
  const PanelWeight& w;
  const IsaKernels& kernels;
  bool dot;
  const MatrixTiles* matrix;  // nullptr: products on vectors
  std::int64_t units;         // 4-byte units (an f32 or a pair of bf16) in a row of x
  std::int64_t outputs;
  std::int64_t first_panel = 0;

  const std::byte* x_at(std::int64_t row, std::int64_t column) const {
    const View& x = args.x;
    const std::int64_t x_row = x_rows != nullptr ? x_rows[row] : row;
    return static_cast<const std::byte*>(x.data) +
           (x_row * x.stride[0] + column) * static_cast<std::int64_t>(size_of(x.dtype));
  }
  // Returns true if 8-bit weights are converted to bf16 before the product, one range of a panel at a time.
  // Only matrix tiles need this.
  bool widened() const { return matrix != nullptr && w.dtype() == DType::f8_e4m3; }
  TileFunction tile(std::int64_t rows) const {
    if (matrix != nullptr) return matrix->bf16[rows > kMatrixRows ? 1 : 0];
    return kernels.tiles[static_cast<int>(operand_of(w.dtype(), dot))][rows - 1];
  }
};

// Reads the units [unit, unit + count) of one row of x. Units after the last column are zero.
void read_units(const PanelProduct& product, std::int64_t row, std::int64_t unit, std::int64_t count,
                std::uint32_t* part);

// Returns the number of steps to process before the next panel. If x is a single tile, this is all steps.
// Products with scales are always split at the same steps.
std::int64_t stretch_steps(const PanelProduct& product, std::int64_t tiles);

// Multiplies a tile of x by a range of one panel, which begins at step `step`. With scales, each partial
// sum over a group (or over part of a group) is scaled and added to c. The boundaries of these sums do not
// depend on x.
void multiply_tile(const PanelProduct& product, TileFunction tile, std::int64_t rows, std::int64_t panel,
                   std::int64_t step, TileArgs args);

// Multiplies `rows` rows of x, from `first_row` on, with matrix tiles. `scratch` has
// matmul_scratch_bytes(cols) bytes.
void tile_matmul(const PanelProduct& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
                 std::byte* scratch);

}  // namespace octavo::cpu
