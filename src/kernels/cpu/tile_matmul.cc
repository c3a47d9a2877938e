// Products of more than 32 rows of x with bf16 or fp8 panels, on matrix tiles.
//
// L2 delivers a tile in 19 cycles, and multiplying four pairs of tiles takes 64 cycles: at most two of the
// four tiles that a step loads may come from L2. So a range of one panel stays in L1. The same range of all
// rows of x and the sums of the unit of work stay in L2. Everything else comes from L3 or memory. Each step
// prefetches a little of it, because a prefetch holds one of the 16 fill buffers of L1 until it ends.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panel_product.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kTileUnitBytes = kTileRows * 4;  // bytes of a unit of all rows of a tile
constexpr std::int64_t kBlockBytes = kMatrixSteps * kTileUnitBytes;
constexpr std::int64_t kStepBytes = 4 * kMostWidth;     // bytes of a step of a bf16 panel
static_assert(kTileMatmulRows * 2 <= kMatmulRows * 4);  // a row of x has 2 bytes per column

// x in ranges of `stretch` units. A range is a sequence of tiles of 32 rows, and a tile is a sequence of
// blocks of 16 units. Missing rows of the last tile keep old contents, because their sums are not used.
struct TileRanges {
  std::byte* data;
  std::int64_t rows;
  std::int64_t units;
  std::int64_t stretch;
  std::int64_t tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  std::int64_t ranges() const { return (units + stretch - 1) / stretch; }
  std::int64_t units_of(std::int64_t range) const { return std::min(stretch, units - range * stretch); }
  std::byte* at(std::int64_t range, std::int64_t tile) const {
    return data + (range * stretch * tiles() + tile * units_of(range)) * kTileUnitBytes;
  }
};

void pack_tile(const PanelProduct& product, const TileRanges& x, std::int64_t first_row, std::int64_t range,
               std::int64_t tile) {
  alignas(64) std::uint32_t part[kMatrixStretch];
  const std::int64_t begin = range * x.stretch, end = begin + x.units_of(range);
  std::byte* const to = x.at(range, tile);
  const std::int64_t rows = std::min(kTileRows, x.rows - tile * kTileRows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = first_row + tile * kTileRows + r;
    for (std::int64_t unit = begin; unit < end; unit += kMatrixStretch) {
      const std::int64_t count = std::min(kMatrixStretch, end - unit);
      const std::byte* from = product.x_at(row, 2 * unit);
      if (2 * (unit + count) > product.w.cols()) {
        read_units(product, row, unit, count, part);
        from = reinterpret_cast<const std::byte*>(part);
      }
      std::byte* block = to + (unit - begin) * kTileUnitBytes + r * kMatrixBytes;
      for (std::int64_t i = 0; i < count; i += kMatrixSteps, from += kMatrixBytes, block += kBlockBytes)
        std::memcpy(block, from, kMatrixBytes);
    }
  }
}

// Multiplies the rows of a unit, which begins at a tile, by its panels.
void multiply_unit_of_tiles(const PanelProduct& product, const TileRanges& x, std::int64_t first_row,
                            const MatmulUnit& unit) {
  alignas(64) float c[kTileMatmulRows * (kUnitColumns + kSumGap)];
  alignas(64) std::byte wide[kMatrixStretch * kStepBytes];  // a range of an e4m3 panel in bf16
  const PanelLayout& layout = product.w.layout();
  const std::int64_t columns = unit.panels() * layout.width, c_stride = columns + kSumGap;
  const std::int64_t first_tile = unit.row_begin / kTileRows;
  const std::int64_t tiles = (unit.rows() + kTileRows - 1) / kTileRows;
  // Bytes of the next range of x to prefetch in each block of steps.
  const std::int64_t ahead_x_bytes = round_up(kBlockBytes / unit.panels(), kMatrixBytes);
  MatrixTilesInUse in_use(product.matrix);
  in_use.shape(kTileRows, kMatrixBytes);

  for (std::int64_t range = 0; range < x.ranges(); ++range) {
    const std::int64_t step = range * x.stretch, steps = std::min(x.stretch, layout.steps() - step);
    const std::int64_t begin = step * layout.step_bytes(), bytes = steps * layout.step_bytes();
    const std::int64_t next_range = range + 1 < x.ranges() ? range + 1 : 0;
    const std::int64_t blocks = (steps + kMatrixSteps - 1) / kMatrixSteps;
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      const std::byte* w = product.w.data() + panel * layout.panel_bytes() + begin;
      if (product.is_e4m3()) {
        product.kernels.widen_packed(w, Packed::e4m3, wide, bytes);
        w = wide;
      }
      const std::byte* next =
          product.w.data() + next_stretch(unit, panel, begin, begin + bytes, layout.panel_bytes());
      const std::int64_t column = (panel - unit.panel_begin) * layout.width;
      const std::int64_t x_part = (panel - unit.panel_begin) * blocks * ahead_x_bytes;
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::byte* ahead = next + tile * bytes / tiles;
        const std::int64_t rows = std::min(kTileRows, unit.rows() - tile * kTileRows);
        multiply_tile(product, product.matrix->bf16[rows > kMatrixRows ? 1 : 0], rows, panel, step,
                      {.x = x.at(range, first_tile + tile),
                       .x_row_stride = kMatrixBytes,
                       .x_unit_stride = kTileUnitBytes,
                       .w = &w,
                       .segments = 1,
                       .w_offset = 0,
                       .steps = steps,
                       .step_stride = kStepBytes,
                       .vector_stride = kStepBytes / 2,
                       .c = c + tile * kTileRows * c_stride + column,
                       .c_stride = c_stride,
                       .accumulate = range > 0,
                       .ahead = &ahead,
                       .ahead_step_stride = layout.step_bytes() / tiles,
                       .ahead_x = x.at(next_range, first_tile + tile) + x_part,
                       .ahead_x_bytes = ahead_x_bytes});
      }
    }
  }
  const std::int64_t output = unit.panel_begin * layout.width;
  write_outputs(product.kernels, product.args, c, c_stride, first_row + unit.row_begin, unit.rows(), output,
                std::min(columns, product.outputs - output));
}

}  // namespace

void tile_matmul(const PanelProduct& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
                 std::byte* scratch) {
  const PanelLayout& layout = product.w.layout();
  CHECK(product.units % kMatrixSteps == 0);
  const TileRanges x{.data = scratch,
                     .rows = rows,
                     .units = product.units,
                     // whole blocks, so that the blocks of a range end where the next range begins
                     .stretch = round_up(stretch_steps(product), kMatrixSteps)};
  pool.for_ranges(x.ranges() * x.tiles(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) pack_tile(product, x, first_row, i / x.tiles(), i % x.tiles());
  });
  const bool shared = rows * layout.rows * layout.cols >= kWorthSharing;
  for_tile_units(pool, rows, layout.panels(), layout.width, shared,
                 [&](const MatmulUnit& unit) { multiply_unit_of_tiles(product, x, first_row, unit); });
}

}  // namespace octavo::cpu
