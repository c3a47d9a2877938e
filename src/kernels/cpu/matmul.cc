// y = x W^T + bias, for any number of rows with one arithmetic.
//
// Each element of y is one accumulator that meets k in order (isa.h), so blocking (matmul.h) changes nothing
// but speed.
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kStretchBytes = 2048;     // of one row of W
constexpr std::int64_t kWorthSharing = 1 << 18;  // multiplications that repay waking the other threads

constexpr std::int64_t kPieceUnits = 128;  // of a tile of x, laid out at a time

// Of any instruction set.
constexpr std::int64_t kMostTileRows = 12;
constexpr std::int64_t kMostWidth = 32;

// x as the tiles want it: numbers or pairs of 4 bytes, in tiles of `tile_rows` rows.
struct TiledX {
  const std::byte* data;
  std::int64_t rows;
  std::int64_t tile_rows;
  std::int64_t tile_stride;  // bytes from tile to tile
  std::int64_t row_stride;   // 0: the rows of a tile are interleaved
  std::int64_t tiles() const { return (rows + tile_rows - 1) / tile_rows; }
  std::int64_t rows_of(std::int64_t tile) const { return std::min(tile_rows, rows - tile * tile_rows); }
};

struct Product {
  const MatmulArgs& args;
  const PanelWeight& w;
  const IsaKernels& kernels;
  bool dot;
  std::int64_t units;  // 4-byte units of a row of x: f32, or pairs of bf16
};

// Units [unit, unit + count) of one tile of x, the rows interleaved unit by unit; what lies past the last
// column is zero. Put together aside: lines that other processors have read are best written all at once.
void interleave(const Product& product, std::int64_t first_row, std::int64_t rows, std::int64_t unit,
                std::int64_t count, std::byte* tile) {
  const View& x = product.args.x;
  alignas(64) std::uint32_t part[kPieceUnits];
  alignas(64) std::uint32_t piece[kPieceUnits * kMostTileRows];
  const std::int64_t per_unit = product.dot ? 2 : 1;
  const std::int64_t there = std::min(count * per_unit, product.w.cols() - unit * per_unit);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::byte* from =
        static_cast<const std::byte*>(x.data) +
        ((first_row + r) * x.stride[0] + unit * per_unit) * static_cast<std::int64_t>(size_of(x.dtype));
    part[count - 1] = 0;
    if (product.dot) {
      std::memcpy(part, from, static_cast<std::size_t>(there * 2));
    } else if (there > 0) {
      product.kernels.widen(from, format_of(x.dtype), reinterpret_cast<float*>(part), there);
    }
    for (std::int64_t i = 0; i < count; ++i) piece[i * rows + r] = part[i];
  }
  std::memcpy(tile + unit * rows * 4, piece, static_cast<std::size_t>(count * rows * 4));
}

TiledX tile_x(const Product& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
              std::byte* scratch) {
  const View& x = product.args.x;
  TiledX tiled{.data = scratch,
               .rows = rows,
               .tile_rows = even_tile_rows(rows, product.kernels.tile_rows),
               .tile_stride = 0,
               .row_stride = 0};
  const bool as_is =
      product.dot ? product.w.cols() % 2 == 0 : x.dtype == DType::f32 && product.w.layout().unit == 1;
  if (tiled.tiles() == 1 && as_is) {
    tiled.row_stride = x.stride[0] * static_cast<std::int64_t>(size_of(x.dtype));
    tiled.data = static_cast<const std::byte*>(x.data) + first_row * tiled.row_stride;
    if (rows == 1) tiled.row_stride = 4;
    return tiled;
  }
  tiled.tile_stride = tiled.tile_rows * product.units * 4;
  for_pieces(pool, tiled.tiles(), product.units, kPieceUnits,
             [&](std::int64_t tile, std::int64_t unit, std::int64_t count) {
               interleave(product, first_row + tile * tiled.tile_rows, tiled.rows_of(tile), unit, count,
                          scratch + tile * tiled.tile_stride);
             });
  return tiled;
}

// Steps after which the next panel has its turn. All of them where x is a single tile; but sums of scaled
// numbers are always cut alike.
std::int64_t stretch_steps(const PanelWeight& w, std::int64_t tiles) {
  const PanelLayout& layout = w.layout();
  const std::int64_t steps = kStretchBytes / (layout.unit * layout.element_bytes);
  const std::int64_t group = w.scales().group_steps;
  if (group > 0 && group < steps) return tiles == 1 ? layout.steps() : steps / group * group;
  return tiles == 1 && group == 0 ? layout.steps() : steps;
}

// A tile of x times a stretch of one panel, from step `step` on. With scales, sums of a group (of a stretch,
// if that is less) join c when they are scaled, at the same steps for any x.
void multiply_tile(const Product& product, const TileFunction tile, std::int64_t rows, std::int64_t panel,
                   std::int64_t step, TileArgs args) {
  const PanelScales& scales = product.w.scales();
  if (scales.groups == 0) return tile(args);
  const std::int64_t width = product.w.layout().width;
  const std::int64_t units_per_step = product.dot ? 1 : product.w.layout().unit;
  alignas(64) float sums[kMostTileRows * kMostWidth];
  float* c = args.c;
  if (!args.accumulate)
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(c + r * args.c_stride, width, 0.0f);
  const std::int64_t end = step + args.steps;
  const std::int64_t c_stride = std::exchange(args.c_stride, width);
  args.c = sums;
  args.accumulate = false;
  for (std::int64_t next = 0; step < end; step = next) {
    next = std::min((step / scales.group_steps + 1) * scales.group_steps, end);
    args.steps = next - step;
    tile(args);
    args.x += args.steps * units_per_step * args.x_unit_stride;
    args.w_offset += args.steps * args.step_stride;
    const float* factors = scales.at(product.w.layout(), panel, step / scales.group_steps);
    for (std::int64_t r = 0; r < rows; ++r)
      product.kernels.add_scaled(sums + r * width, factors, c + r * c_stride, width);
  }
}

void multiply_unit(const Product& product, const TiledX& x, std::int64_t first_row, const MatmulUnit& unit) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  const PanelLayout& layout = product.w.layout();
  const std::int64_t columns = unit.panels() * layout.width;
  const TileFunction* tile_functions =
      product.kernels.tiles[static_cast<int>(operand_of(product.w.dtype(), product.dot))];
  const std::int64_t units_per_step = product.dot ? 1 : layout.unit;
  const std::int64_t first_tile = unit.row_begin / x.tile_rows;
  const std::int64_t tiles = (unit.rows() + x.tile_rows - 1) / x.tile_rows;
  const std::int64_t stretch = stretch_steps(product.w, tiles);

  for (std::int64_t step = 0; step < layout.steps(); step += stretch) {
    const std::int64_t steps = std::min(stretch, layout.steps() - step);
    const std::int64_t begin = step * layout.step_bytes(), bytes = steps * layout.step_bytes();
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      const std::byte* w = product.w.data() + panel * layout.panel_bytes() + begin;
      const std::byte* next =
          product.w.data() + next_stretch(unit, panel, begin, begin + bytes, layout.panel_bytes());
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::byte* ahead = next + tile * (bytes / tiles);
        const std::int64_t rows = x.rows_of(first_tile + tile);
        const std::int64_t unit_stride = x.row_stride == 0 ? rows * 4 : 4;
        multiply_tile(
            product, tile_functions[rows - 1], rows, panel, step,
            {
                .x = x.data + (first_tile + tile) * x.tile_stride + step * units_per_step * unit_stride,
                .x_row_stride = x.row_stride == 0 ? 4 : x.row_stride,
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
                .ahead_step_stride = layout.step_bytes() / tiles,
            });
      }
    }
  }
  const std::int64_t output = unit.panel_begin * layout.width;
  write_outputs(product.kernels, product.args, c, columns, first_row + unit.row_begin, unit.rows(), output,
                std::min(columns, layout.rows - output));
}

}  // namespace

void write_outputs(const IsaKernels& kernels, const MatmulArgs& args, const float* sums, std::int64_t stride,
                   std::int64_t row, std::int64_t rows, std::int64_t output, std::int64_t outputs) {
  const View& y = args.y;
  const float* bias = args.bias ? args.bias.as<float>() + output : nullptr;
  for (std::int64_t i = 0; i < rows; ++i)
    kernels.narrow(sums + i * stride, bias, format_of(y.dtype),
                   static_cast<std::byte*>(y.data) +
                       ((row + i) * y.stride[0] + output) * static_cast<std::int64_t>(size_of(y.dtype)),
                   outputs);
}

void matmul(Stream& stream, const MatmulArgs& args) {
  static_cast<const CpuWeight&>(args.w).multiply(cpu_stream(stream), args);
}

void PanelWeight::multiply(CpuStream& cpu, const MatmulArgs& args) const {
  ThreadPool& pool = cpu.pool();
  const bool dot = layout_.unit == 2 && activation() == DType::bf16 &&
                   cpu.kernels().tiles[static_cast<int>(Operand::bf16_dot)] != nullptr;
  const Product product{args, *this, cpu.kernels(), dot,
                        dot ? layout_.steps() : layout_.steps() * layout_.unit};
  std::byte* scratch = cpu.shared(matmul_scratch_bytes(layout_.cols));

  const std::int64_t m = args.y.size(0);
  for (std::int64_t first_row = 0; first_row < m; first_row += kMatmulRows) {
    const TiledX x = tile_x(product, pool, first_row, std::min(kMatmulRows, m - first_row), scratch);
    for_matmul_units(pool, x.rows, x.tile_rows, layout_.panels(), layout_.width,
                     x.rows * layout_.rows * layout_.cols >= kWorthSharing,
                     [&](const MatmulUnit& unit) { multiply_unit(product, x, first_row, unit); });
  }
}

}  // namespace octavo::cpu
