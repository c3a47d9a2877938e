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
// of one tile of x fit into the L1 cache together, so the panel's range is read from L2 only once.
constexpr std::int64_t kMatrixStretch = 128;
static_assert(kTileRows == 2 * kMatrixRows);
constexpr std::int64_t kMostWidth = 32;
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
  bool is_e4m3() const { return w.dtype() == DType::f8_e4m3; }
  TileFunction tile(std::int64_t rows) const {
    if (matrix != nullptr) return (is_e4m3() ? matrix->e4m3 : matrix->bf16)[rows > kMatrixRows ? 1 : 0];
    return kernels.tiles[static_cast<int>(operand_of(w.dtype(), dot))][rows - 1];
  }
};

// Reads the units [unit, unit + count) of one row of x. Units after the last column are zero.
void read_units(const PanelProduct& product, std::int64_t row, std::int64_t unit, std::int64_t count,
                std::uint32_t* part);

// Returns the number of steps to process before the next panel, if x has several tiles.
std::int64_t stretch_steps(const PanelProduct& product);

// Multiplies a tile of x by a range of one panel, which begins at step `step`. With scales, each partial
// sum over a group (or over part of a group) is scaled and added to c. These sums end at the end of a group
// and at multiples of stretch_steps(), so they do not depend on x.
void multiply_tile(const PanelProduct& product, TileFunction tile, std::int64_t rows, std::int64_t panel,
                   std::int64_t step, TileArgs args);

// Multiplies `rows` rows of x, from `first_row` on, with matrix tiles. `scratch` has
// matmul_scratch_bytes(cols) bytes.
void tile_matmul(const PanelProduct& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
                 std::byte* scratch);

}  // namespace octavo::cpu
