// Products of more than 32 rows of x with bf16 or fp8 panels, on matrix tiles.
//
// L2 delivers a tile in 19 cycles, and multiplying four pairs of tiles takes 64 cycles: at most two of the
// four tiles that a step loads may come from L2. So a range of one panel stays in L1, and x is loaded past
// L1. The same range of all rows of x and the sums of the unit of work stay in L2. Everything else comes from
// L3 or memory. Each step prefetches a little of it, because a prefetch holds one of the 16 fill buffers of
// L1 until it ends.
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
// Steps of a panel in a strip. They take 32 KB of L1. Longer ranges load and store sums less often.
constexpr std::int64_t kStripSteps = 256;
// Size of x from which its next range is prefetched. A smaller x stays in L2.
constexpr std::int64_t kLargeX = std::int64_t{1} << 20;

// Returns true if products are strips (MatrixTiles::strip_bf16). Scaled sums and fp8 have shorter ranges.
bool in_strips(const PanelProduct& product) {
  return product.w.scales().groups == 0 && !product.is_e4m3() &&
         product.w.layout().steps() % kMatrixSteps == 0;
}

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

// A unit of a product. It begins at a tile of x.
struct TileUnit {
  const PanelProduct& product;
  const TileRanges& x;
  const MatmulUnit& unit;
  float* c;
  std::int64_t c_stride;
  std::int64_t first_tile = unit.row_begin / kTileRows;
  std::int64_t tiles = (unit.rows() + kTileRows - 1) / kTileRows;
  std::int64_t rows_of(std::int64_t tile) const {
    return std::min(kTileRows, unit.rows() - tile * kTileRows);
  }
};

// A range of columns of one panel.
struct PanelRange {
  std::int64_t range;
  std::int64_t panel;
  const std::byte* w;
  std::int64_t steps;
  const std::byte* ahead;  // the range of W to prefetch
  std::int64_t ahead_bytes;
  const std::byte* ahead_x;  // part of the next range of x to prefetch: [tile][block][ahead_x_bytes]
  std::int64_t ahead_x_bytes;
  std::int64_t blocks() const { return (steps + kMatrixSteps - 1) / kMatrixSteps; }
};

// Multiplies the tiles of a unit that have more than 16 rows, and returns their number.
std::int64_t multiply_strip(const TileUnit& of, const PanelRange& part, float* c) {
  const std::int64_t tiles = of.tiles - (of.rows_of(of.tiles - 1) <= kMatrixRows ? 1 : 0);
  of.product.matrix->strip_bf16({.x = of.x.at(part.range, of.first_tile),
                                 .tiles = tiles,
                                 .w = part.w,
                                 .blocks = part.blocks(),
                                 .c = c,
                                 .c_stride = of.c_stride,
                                 .accumulate = part.range > 0,
                                 .ahead = part.ahead,
                                 .ahead_bytes = part.ahead_bytes / (part.blocks() * of.tiles),
                                 .ahead_x = part.ahead_x,
                                 .ahead_x_bytes = part.ahead_x_bytes});
  return tiles;
}

void multiply_panel_range(const TileUnit& of, const PanelRange& part) {
  float* const c = of.c + (part.panel - of.unit.panel_begin) * of.product.w.layout().width;
  std::int64_t tile = in_strips(of.product) ? multiply_strip(of, part, c) : 0;
  for (; tile < of.tiles; ++tile) {
    const std::byte* ahead = part.ahead + tile * part.ahead_bytes / of.tiles;
    const std::int64_t rows = of.rows_of(tile);
    multiply_tile(of.product, of.product.matrix->bf16[rows > kMatrixRows ? 1 : 0], rows, part.panel,
                  part.range * of.x.stretch,
                  {.x = of.x.at(part.range, of.first_tile + tile),
                   .x_row_stride = kMatrixBytes,
                   .x_unit_stride = kTileUnitBytes,
                   .w = &part.w,
                   .segments = 1,
                   .w_offset = 0,
                   .steps = part.steps,
                   .step_stride = kStepBytes,
                   .vector_stride = kStepBytes / 2,
                   .c = c + tile * kTileRows * of.c_stride,
                   .c_stride = of.c_stride,
                   .accumulate = part.range > 0,
                   .ahead = &ahead,
                   .ahead_step_stride = of.product.w.layout().step_bytes() / of.tiles,
                   .ahead_x = part.ahead_x + tile * part.blocks() * part.ahead_x_bytes,
                   .ahead_x_bytes = part.ahead_x_bytes});
  }
}

void multiply_unit_of_tiles(const PanelProduct& product, const TileRanges& x, std::int64_t first_row,
                            const MatmulUnit& unit) {
  alignas(64) float c[kTileMatmulRows * (kUnitColumns + kSumGap)];
  alignas(64) std::byte wide[kMatrixStretch * kStepBytes];  // a range of an e4m3 panel in bf16
  const PanelLayout& layout = product.w.layout();
  const std::int64_t columns = unit.panels() * layout.width;
  const TileUnit of{.product = product, .x = x, .unit = unit, .c = c, .c_stride = columns + kSumGap};
  // Bytes of the next range of x to prefetch in each block of steps.
  const std::int64_t ahead_x_bytes =
      of.tiles * x.units * kTileUnitBytes > kLargeX ? round_up(kBlockBytes / unit.panels(), kMatrixBytes) : 0;
  MatrixTilesInUse in_use(product.matrix);
  in_use.shape(kTileRows, kMatrixBytes);

  for (std::int64_t range = 0; range < x.ranges(); ++range) {
    const std::int64_t step = range * x.stretch, steps = std::min(x.stretch, layout.steps() - step);
    const std::int64_t begin = step * layout.step_bytes(), bytes = steps * layout.step_bytes();
    const std::byte* next_x = x.at(range + 1 < x.ranges() ? range + 1 : 0, of.first_tile);
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      PanelRange part{
          .range = range,
          .panel = panel,
          .w = product.w.data() + panel * layout.panel_bytes() + begin,
          .steps = steps,
          .ahead = product.w.data() + next_stretch(unit, panel, begin, begin + bytes, layout.panel_bytes()),
          .ahead_bytes = bytes,
          .ahead_x = next_x,
          .ahead_x_bytes = ahead_x_bytes};
      if (product.is_e4m3()) {
        product.kernels.widen_packed(part.w, Packed::e4m3, wide, bytes);
        part.w = wide;
      }
      multiply_panel_range(of, part);
      next_x += of.tiles * part.blocks() * ahead_x_bytes;
    }
  }
  const std::int64_t output = unit.panel_begin * layout.width;
  write_outputs(product.kernels, product.args, c, of.c_stride, first_row + unit.row_begin, unit.rows(),
                output, std::min(columns, product.outputs - output));
}

}  // namespace

void tile_matmul(const PanelProduct& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
                 std::byte* scratch) {
  const PanelLayout& layout = product.w.layout();
  CHECK(product.units % kMatrixSteps == 0);
  const TileRanges x{
      .data = scratch,
      .rows = rows,
      .units = product.units,
      // whole blocks, so that the blocks of a range end where the next range begins
      .stretch = in_strips(product) ? kStripSteps : round_up(stretch_steps(product), kMatrixSteps)};
  pool.for_ranges(x.ranges() * x.tiles(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) pack_tile(product, x, first_row, i / x.tiles(), i % x.tiles());
  });
  const bool shared = rows * layout.rows * layout.cols >= kWorthSharing;
  for_tile_units(pool, rows, layout.panels(), layout.width, shared,
                 [&](const MatmulUnit& unit) { multiply_unit_of_tiles(product, x, first_row, unit); });
}

}  // namespace octavo::cpu
