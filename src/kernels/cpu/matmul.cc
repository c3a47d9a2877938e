// Computes y = x W^T + bias, with the same arithmetic for any number of rows.
//
// Each element of y has one accumulator, to which products are added in the order of k (isa.h). So blocking
// (matmul.h) affects only speed. Matrix tiles add in a different order (matrix_tiles.h), so processors with
// matrix tiles use them for all bf16 products, even for single rows.
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panel_product.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kStretchBytes = 2048;  // bytes of a row of W that are processed at a time
constexpr std::int64_t kPieceUnits = 128;     // units of x that are packed at a time, per tile
// Size from which outputs are written past the caches. Smaller ones may stay in L2 until they are read.
constexpr std::int64_t kStreamedBytes = std::int64_t{4} << 20;

// x, packed for the tiles: units of 4 bytes, in tiles of `tile_rows` rows.
struct TiledX {
  const std::byte* data;
  std::int64_t rows;
  std::int64_t tile_rows;
  std::int64_t tile_stride;  // bytes from tile to tile
  std::int64_t row_stride;
  // true: each row is stored in blocks of 16 units, for matrix tiles; false: the units of a row are
  // contiguous
  bool blocks;
  std::int64_t tiles() const { return (rows + tile_rows - 1) / tile_rows; }
  std::int64_t rows_of(std::int64_t tile) const { return std::min(tile_rows, rows - tile * tile_rows); }
  std::int64_t unit_stride(std::int64_t tile) const {
    return blocks ? round_up(rows_of(tile), kMatrixRows) * 4 : 4;
  }
};

// Packs the units [unit, unit + count) of one tile of x, row by row.
void lay_rows(const PanelProduct& product, const TiledX& x, std::int64_t first_row, std::int64_t rows,
              std::int64_t unit, std::int64_t count, std::byte* tile) {
  for (std::int64_t r = 0; r < rows; ++r)
    read_units(product, first_row + r, unit, count,
               reinterpret_cast<std::uint32_t*>(tile + r * x.row_stride + unit * 4));
}

// Packs blocks of 16 units of each row, for matrix tiles. Missing rows of a block keep old contents,
// because their sums are not used.
void lay_blocks(const PanelProduct& product, const TiledX&, std::int64_t first_row, std::int64_t rows,
                std::int64_t unit, std::int64_t count, std::byte* tile) {
  alignas(64) std::uint32_t part[kPieceUnits];
  const std::int64_t block_rows = round_up(rows, kMatrixRows);
  for (std::int64_t r = 0; r < rows; ++r) {
    read_units(product, first_row + r, unit, count, part);
    for (std::int64_t i = 0; i < count; i += kMatrixSteps)
      std::memcpy(tile + (unit + i) * block_rows * 4 + r * kMatrixSteps * 4, part + i, kMatrixSteps * 4);
  }
}

TiledX tile_x(const PanelProduct& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
              std::byte* scratch) {
  const View& x = product.args.x;
  const bool matrix = product.matrix != nullptr;
  TiledX tiled{.data = scratch,
               .rows = rows,
               .tile_rows = matrix ? kTileRows : even_tile_rows(rows, product.kernels.tile_rows),
               .tile_stride = 0,
               .row_stride = matrix ? kMatrixSteps * 4 : product.units * 4 + kRowGap,
               .blocks = matrix};
  if (tiled.tiles() == 1 && (rows == 1 || product.x_rows == nullptr)) {
    const std::int64_t whole = matrix ? 2 * kMatrixSteps : 2;
    const bool as_is =
        product.dot ? product.w.cols() % whole == 0 : x.dtype == DType::f32 && product.w.layout().unit == 1;
    if (as_is) {
      tiled.row_stride = x.stride[0] * static_cast<std::int64_t>(size_of(x.dtype));
      tiled.data = product.x_at(first_row, 0);
      tiled.blocks = false;
      return tiled;
    }
  }
  tiled.tile_stride = tiled.tile_rows * (matrix ? product.units * 4 : tiled.row_stride);
  for_pieces(pool, tiled.tiles(), product.units, kPieceUnits,
             [&](std::int64_t tile, std::int64_t unit, std::int64_t count) {
               (matrix ? lay_blocks : lay_rows)(product, tiled, first_row + tile * tiled.tile_rows,
                                                tiled.rows_of(tile), unit, count,
                                                scratch + tile * tiled.tile_stride);
             });
  return tiled;
}

// Returns true if each group of columns with a common scale is a multiple of a matrix tile.
bool tiles_fit(const PanelScales& scales) {
  return scales.groups <= 1 || scales.group_steps % kMatrixSteps == 0;
}

PanelProduct product_of(const MatmulArgs& args, const std::int32_t* x_rows, const PanelWeight& w,
                        const IsaKernels& kernels) {
  const PanelLayout& layout = w.layout();
  const bool dot = layout.unit == 2 && w.activation() == DType::bf16 &&
                   kernels.tiles[static_cast<int>(Operand::bf16_dot)] != nullptr;
  const MatrixTiles* matrix = dot && tiles_fit(w.scales()) ? kernels.matrix : nullptr;
  std::int64_t units = dot ? layout.steps() : layout.steps() * layout.unit;
  if (matrix != nullptr) units = round_up(units, kMatrixSteps);
  return {args, x_rows, w, kernels, dot, matrix, units, args.y.size(1)};
}

void multiply_unit(const PanelProduct& product, const TiledX& x, std::int64_t first_row,
                   const MatmulUnit& unit) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  const PanelLayout& layout = product.w.layout();
  const std::int64_t columns = unit.panels() * layout.width;
  const std::int64_t units_per_step = product.dot ? 1 : layout.unit;
  const std::int64_t first_tile = unit.row_begin / x.tile_rows;
  const std::int64_t tiles = (unit.rows() + x.tile_rows - 1) / x.tile_rows;
  // A single tile reads its panels from begin to end.
  const std::int64_t stretch = tiles == 1 ? layout.steps() : stretch_steps(product);
  MatrixTilesInUse in_use(product.matrix);
  in_use.shape(unit.rows(), kMatrixBytes);

  for (std::int64_t step = 0; step < layout.steps(); step += stretch) {
    const std::int64_t steps = std::min(stretch, layout.steps() - step);
    const std::int64_t begin = step * layout.step_bytes(), bytes = steps * layout.step_bytes();
    const std::int64_t ahead_bytes = bytes / tiles,
                       // Computed once, because the division is slow.
        ahead_step = layout.step_bytes() / tiles;
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      const std::byte* w = product.w.data() + panel * layout.panel_bytes() + begin;
      const std::byte* next =
          product.w.data() + next_stretch(unit, panel, begin, begin + bytes, layout.panel_bytes());
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::byte* ahead = next + tile * ahead_bytes;
        const std::int64_t rows = x.rows_of(first_tile + tile);
        const std::int64_t unit_stride = x.unit_stride(first_tile + tile);
        multiply_tile(
            product, product.tile(rows), rows, panel, step,
            {
                .x = x.data + (first_tile + tile) * x.tile_stride + step * units_per_step * unit_stride,
                .x_row_stride = x.row_stride,
                .x_unit_stride = unit_stride,
                .w = &w,
                .segments = 1,
                .w_offset = 0,
                .steps = steps,
                .step_stride = layout.step_bytes(),
                .vector_stride = product.w.vector_stride(),
                .c = c + tile * x.tile_rows * columns + (panel - unit.panel_begin) * layout.width,
                .c_stride = columns,
                .accumulate = step > 0,
                .ahead = tiles > 1 ? &ahead : nullptr,
                .ahead_step_stride = ahead_step,
            });
      }
    }
  }
  const std::int64_t output = (unit.panel_begin - product.first_panel) * layout.width;
  write_outputs(product.kernels, product.args, c, columns, first_row + unit.row_begin, unit.rows(), output,
                std::min(columns, product.outputs - output));
}

}  // namespace

void read_units(const PanelProduct& product, std::int64_t row, std::int64_t unit, std::int64_t count,
                std::uint32_t* part) {
  const std::int64_t per_unit = product.dot ? 2 : 1;
  const std::int64_t left_columns = std::min(count * per_unit, product.w.cols() - unit * per_unit);
  const std::byte* from = product.x_at(row, unit * per_unit);
  std::fill(part + std::max<std::int64_t>(left_columns, 0) / per_unit, part + count, 0u);
  if (product.dot) {
    std::memcpy(part, from, static_cast<std::size_t>(left_columns * 2));
  } else if (left_columns > 0) {
    product.kernels.widen(from, format_of(product.args.x.dtype), reinterpret_cast<float*>(part),
                          left_columns);
  }
}

std::int64_t stretch_steps(const PanelProduct& product) {
  const PanelLayout& layout = product.w.layout();
  const std::int64_t steps =
      product.matrix != nullptr ? kMatrixStretch : kStretchBytes / (layout.unit * layout.element_bytes);
  const std::int64_t group = product.w.scales().group_steps;
  return group > 0 && group < steps ? steps / group * group : steps;
}

void multiply_tile(const PanelProduct& product, TileFunction tile, std::int64_t rows, std::int64_t panel,
                   std::int64_t step, TileArgs args) {
  const PanelScales& scales = product.w.scales();
  if (scales.groups == 0) return tile(args);
  const std::int64_t width = product.w.layout().width;
  const std::int64_t units_per_step = product.dot ? 1 : product.w.layout().unit;
  // Vectors wait long for the stores of tiles, so sums are scaled after the product of the next group.
  alignas(64) float sums[2][kTileRows * kMostWidth];
  float* c = args.c;
  if (!args.accumulate)
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(c + r * args.c_stride, width, 0.0f);
  const std::int64_t end = step + args.steps, stretch = stretch_steps(product);
  const std::int64_t c_stride = std::exchange(args.c_stride, width);
  const std::byte* w = *args.w;
  const std::byte* ahead = args.ahead != nullptr ? *args.ahead : nullptr;
  args.w = &w;
  if (ahead != nullptr) args.ahead = &ahead;
  args.accumulate = false;
  std::int64_t group = step / scales.group_steps;
  std::int64_t group_end = (group + 1) * scales.group_steps, stretch_end = (step / stretch + 1) * stretch;
  const float* factors = nullptr;  // factors of the sums that are not added yet
  for (int turn = 0; step < end; turn = 1 - turn) {
    const std::int64_t next = std::min(std::min(group_end, stretch_end), end);
    args.c = sums[turn];
    args.steps = next - step;
    tile(args);
    if (factors != nullptr) product.kernels.add_scaled(sums[1 - turn], factors, c, width, rows, c_stride);
    factors = scales.at(product.w.layout(), panel, group);
    args.x += args.steps * units_per_step * args.x_unit_stride;
    w += args.steps * args.step_stride;
    if (ahead != nullptr) ahead += args.steps * args.ahead_step_stride;
    if (args.ahead_x != nullptr) args.ahead_x += args.steps / kMatrixSteps * args.ahead_x_bytes;
    step = next;
    if (step == stretch_end) stretch_end += stretch;
    if (step == group_end) {
      group_end += scales.group_steps;
      ++group;
    }
    if (step == end) product.kernels.add_scaled(sums[turn], factors, c, width, rows, c_stride);
  }
}

void write_outputs(const IsaKernels& kernels, const MatmulArgs& args, const float* sums, std::int64_t stride,
                   std::int64_t row, std::int64_t rows, std::int64_t output, std::int64_t outputs) {
  const View& y = args.y;
  const auto element_bytes = static_cast<std::int64_t>(size_of(y.dtype));
  const float* bias = args.bias ? args.bias.as<float>() + output : nullptr;
  // An ordinary store reads the line first. Products on vectors take so long that this does not matter.
  const bool streams = kernels.matrix != nullptr && y.size(0) * y.size(1) * element_bytes >= kStreamedBytes;
  alignas(64) std::byte numbers[kUnitColumns * sizeof(float)];
  for (std::int64_t i = 0; i < rows; ++i) {
    std::byte* const to =
        static_cast<std::byte*>(y.data) + ((row + i) * y.stride[0] + output) * element_bytes;
    kernels.narrow(sums + i * stride, bias, format_of(y.dtype), streams ? numbers : to, outputs);
    if (streams) kernels.matrix->stream(numbers, to, outputs * element_bytes);
  }
  if (streams) std::atomic_thread_fence(std::memory_order_seq_cst);
}

void matmul(Stream& stream, const MatmulArgs& args) {
  static_cast<const CpuWeight&>(args.w).multiply(cpu_stream(stream), args, nullptr);
}

void PanelWeight::multiply(CpuStream& cpu, const MatmulArgs& args, const std::int32_t* x_rows) const {
  ThreadPool& pool = cpu.pool();
  const PanelProduct product = product_of(args, x_rows, *this, cpu.kernels());
  std::byte* scratch = cpu.shared(matmul_scratch_bytes(layout_.cols));

  const std::int64_t m = args.y.size(0);
  if (product.matrix != nullptr && m > kTileRows) {
    const std::int64_t together = tile_matmul_rows(m);
    for (std::int64_t first_row = 0; first_row < m; first_row += together)
      tile_matmul(product, pool, first_row, std::min(together, m - first_row), scratch);
    return;
  }
  for (std::int64_t first_row = 0; first_row < m; first_row += kMatmulRows) {
    const TiledX x = tile_x(product, pool, first_row, std::min(kMatmulRows, m - first_row), scratch);
    for_matmul_units(pool, x.rows, x.tile_rows, layout_.panels(), layout_.width,
                     x.rows * layout_.rows * layout_.cols >= kWorthSharing,
                     [&](const MatmulUnit& unit) { multiply_unit(product, x, first_row, unit); });
  }
}

// A unit of work is one head of some rows, because there are many heads with small matrices.
void head_matmul(Stream& stream, const HeadMatmulArgs& args) {
  constexpr std::int64_t kRows = 2 * kMatrixRows;
  CpuStream& cpu = cpu_stream(stream);
  const auto& w = static_cast<const PanelWeight&>(args.w);
  const std::int64_t m = args.y.size(0), heads = args.y.size(1), outputs = args.y.size(2);
  const std::int64_t blocks = (m + kRows - 1) / kRows, panels = outputs / w.layout().width;
  const auto head_of = [](const View& view, std::int64_t head) {
    const std::int64_t first = head * view.stride[1] * static_cast<std::int64_t>(size_of(view.dtype));
    return View{static_cast<std::byte*>(view.data) + first,
                view.dtype,
                2,
                {view.size(0), view.size(2)},
                {view.stride[0], view.stride[2]}};
  };
  cpu.pool().for_units(heads * blocks, [&](int, std::int64_t i) {
    alignas(64) std::byte scratch[kRows * (kMaxLatentDim * 4 + kRowGap)];
    const std::int64_t head = i / blocks, row = i % blocks * kRows;
    const MatmulArgs of_head{.x = head_of(args.x, head), .w = w, .y = head_of(args.y, head)};
    PanelProduct product = product_of(of_head, nullptr, w, cpu.kernels());
    product.first_panel = head * panels;
    const TiledX x = tile_x(product, cpu.own_thread(), row, std::min(kRows, m - row), scratch);
    for_matmul_units(cpu.own_thread(), x.rows, x.tile_rows, panels, w.layout().width, false,
                     [&](MatmulUnit unit) {
                       unit.panel_begin += product.first_panel;
                       unit.panel_end += product.first_panel;
                       multiply_unit(product, x, row, unit);
                     });
  });
}

}  // namespace octavo::cpu
