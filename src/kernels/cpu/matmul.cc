// y = x W^T + bias, for any number of rows with one arithmetic.
//
// Each element of y is one accumulator that meets k in order (isa.h), so blocking changes nothing but speed.
// The blocks are those of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008):
// a unit of work is a few panels of W times some tiles of x, a stretch of k at a time, such that the stretch
// of x stays in the second-level cache while a panel's stretch passes through the first.
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kUnitRows = 192;       // rows of x of a unit of work
constexpr std::int64_t kUnitColumns = 256;    // outputs of a unit
constexpr std::int64_t kStretchBytes = 2048;  // of one row of W
constexpr std::int64_t kUnitsPerThread =
    16;  // so that no thread is left with much to do when the others are done
constexpr std::int64_t kWorthSharing = 1 << 18;  // multiplications that repay waking the other threads

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

  Operand operand() const {
    switch (w.format()) {
      case Format::f32:
        return Operand::f32;
      case Format::f16:
        return Operand::f16;
      case Format::bf16:
        return dot ? Operand::bf16_dot : Operand::bf16;
    }
    return Operand::f32;
  }
};

// One tile of x, its rows interleaved unit by unit; what lies past the last column is zero.
void interleave(const Product& product, std::int64_t first_row, std::int64_t rows, std::byte* out) {
  const View& x = product.args.x;
  const std::int64_t cols = product.w.cols();
  constexpr std::int64_t kUnits = 256;
  alignas(64) std::uint32_t part[kUnits];
  auto* to = reinterpret_cast<std::uint32_t*>(out);
  const std::int64_t per_unit = product.dot ? 2 : 1;
  const std::int64_t row_bytes = x.stride[0] * static_cast<std::int64_t>(size_of(x.dtype));
  const auto element_bytes = static_cast<std::int64_t>(size_of(x.dtype));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::byte* row = static_cast<const std::byte*>(x.data) + (first_row + r) * row_bytes;
    for (std::int64_t unit = 0; unit < product.units; unit += kUnits) {
      const std::int64_t count = std::min(kUnits, product.units - unit);
      const std::int64_t there = std::min(count * per_unit, cols - unit * per_unit);
      const std::byte* from = row + unit * per_unit * element_bytes;
      part[count - 1] = 0;
      if (product.dot) {
        std::memcpy(part, from, static_cast<std::size_t>(there * 2));
      } else if (there > 0) {
        product.kernels.widen(from, format_of(x.dtype), reinterpret_cast<float*>(part), there);
      }
      for (std::int64_t i = 0; i < count; ++i) to[(unit + i) * rows + r] = part[i];
    }
  }
}

TiledX tile_x(const Product& product, ThreadPool& pool, std::int64_t first_row, std::int64_t rows,
              std::byte* scratch) {
  const View& x = product.args.x;
  const std::int64_t most = product.kernels.tile_rows;
  const std::int64_t tiles = (rows + most - 1) / most;
  TiledX tiled{.data = scratch,
               .rows = rows,
               .tile_rows = (rows + tiles - 1) / tiles,
               .tile_stride = 0,
               .row_stride = 0};
  const bool as_is =
      product.dot ? product.w.cols() % 2 == 0 : x.dtype == DType::f32 && product.w.layout().unit == 1;
  if (tiles == 1 && as_is) {
    tiled.row_stride = x.stride[0] * static_cast<std::int64_t>(size_of(x.dtype));
    tiled.data = static_cast<const std::byte*>(x.data) + first_row * tiled.row_stride;
    if (rows == 1) tiled.row_stride = 4;
    return tiled;
  }
  tiled.tile_stride = tiled.tile_rows * product.units * 4;
  const std::int64_t grain = rows * product.units < kWorthSharing / 16 ? tiled.tiles() : 1;
  pool.for_ranges(tiled.tiles(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile)
      interleave(product, first_row + tile * tiled.tile_rows, tiled.rows_of(tile),
                 scratch + tile * tiled.tile_stride);
  });
  return tiled;
}

// Tiles [first_tile, last_tile) times panels [first_panel, last_panel).
void multiply_unit(const Product& product, const TiledX& x, std::int64_t first_row, std::int64_t first_tile,
                   std::int64_t last_tile, std::int64_t first_panel, std::int64_t last_panel) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  const PanelLayout& layout = product.w.layout();
  const std::int64_t width = layout.width;
  const std::int64_t columns = (last_panel - first_panel) * width;
  const TileFunction* tile_functions = product.kernels.tiles[static_cast<int>(product.operand())];
  const std::int64_t units_per_step = product.dot ? 1 : layout.unit;
  const std::int64_t stretch = kStretchBytes / (layout.unit * layout.element_bytes);

  for (std::int64_t step = 0; step < layout.steps(); step += stretch) {
    for (std::int64_t panel = first_panel; panel < last_panel; ++panel) {
      const std::byte* w = product.w.data() + panel * layout.panel_bytes() + step * layout.step_bytes();
      for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
        const std::int64_t rows = x.rows_of(tile);
        const std::int64_t unit_stride = x.row_stride == 0 ? rows * 4 : 4;
        tile_functions[rows - 1]({
            .x = x.data + tile * x.tile_stride + step * units_per_step * unit_stride,
            .x_row_stride = x.row_stride == 0 ? 4 : x.row_stride,
            .x_unit_stride = unit_stride,
            .w = &w,
            .segments = 1,
            .w_offset = 0,
            .steps = std::min(stretch, layout.steps() - step),
            .step_stride = layout.step_bytes(),
            .vector_stride = product.w.vector_stride(),
            .c = c + (tile - first_tile) * x.tile_rows * columns + (panel - first_panel) * width,
            .c_stride = columns,
            .accumulate = step > 0,
        });
      }
    }
  }

  const View& y = product.args.y;
  const std::int64_t first_output = first_panel * width;
  const std::int64_t outputs = std::min(columns, layout.rows - first_output);
  const float* bias = product.args.bias ? product.args.bias.as<float>() + first_output : nullptr;
  const std::int64_t last_row = std::min(last_tile * x.tile_rows, x.rows);
  for (std::int64_t row = first_tile * x.tile_rows; row < last_row; ++row) {
    std::byte* to = static_cast<std::byte*>(y.data) + ((first_row + row) * y.stride[0] + first_output) *
                                                          static_cast<std::int64_t>(size_of(y.dtype));
    product.kernels.narrow(c + (row - first_tile * x.tile_rows) * columns, bias, format_of(y.dtype), to,
                           outputs);
  }
}

}  // namespace

void matmul(Stream& stream, const MatmulArgs& args) {
  static_cast<const CpuWeight&>(args.w).multiply(cpu_stream(stream), args);
}

void PanelWeight::multiply(CpuStream& cpu, const MatmulArgs& args) const {
  ThreadPool& pool = cpu.pool();
  const bool dot = format() == Format::bf16 && activation() == DType::bf16 &&
                   cpu.kernels().tiles[static_cast<int>(Operand::bf16_dot)] != nullptr;
  const Product product{args, *this, cpu.kernels(), dot,
                        dot ? layout_.steps() : layout_.steps() * layout_.unit};
  std::byte* scratch = cpu.shared(matmul_scratch_bytes(layout_.cols));

  const std::int64_t m = args.y.size(0);
  for (std::int64_t first_row = 0; first_row < m; first_row += kMatmulRows) {
    const TiledX x = tile_x(product, pool, first_row, std::min(kMatmulRows, m - first_row), scratch);
    const std::int64_t tiles_per_unit = std::max<std::int64_t>(1, kUnitRows / x.tile_rows);
    const std::int64_t row_blocks = (x.tiles() + tiles_per_unit - 1) / tiles_per_unit;
    const std::int64_t wanted = kUnitsPerThread * pool.size();
    const std::int64_t panels_per_unit =
        std::clamp<std::int64_t>(layout_.panels() * row_blocks / wanted, 1, kUnitColumns / layout_.width);
    const std::int64_t panel_blocks = (layout_.panels() + panels_per_unit - 1) / panels_per_unit;
    const std::int64_t units = row_blocks * panel_blocks;
    const std::int64_t grain = x.rows * layout_.rows * layout_.cols < kWorthSharing ? units : 1;
    pool.for_ranges(units, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t tile = unit % row_blocks * tiles_per_unit;
        const std::int64_t panel = unit / row_blocks * panels_per_unit;
        multiply_unit(product, x, first_row, tile, std::min(tile + tiles_per_unit, x.tiles()), panel,
                      std::min(panel + panels_per_unit, layout_.panels()));
      }
    });
  }
}

}  // namespace octavo::cpu
