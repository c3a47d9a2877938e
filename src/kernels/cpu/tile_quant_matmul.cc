// Products of 16 and more rows of x with quantised panels, on matrix tiles.
//
// Codes of a range of one panel are unpacked once for all rows of a unit, and stay in L1. x is loaded past
// L1.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/quant_product.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kRangeGroups = 16;  // groups of a panel that are processed at a time
constexpr std::int64_t kRangeColumns = kRangeGroups * kQuantGroup;
// Stride of a row of codes in bytes, with padding. Without padding, the stride would be a power of two, and
// all rows would be in the same cache sets.
constexpr std::int64_t kCodeStride = kRangeColumns + kMatrixBytes;
constexpr std::int64_t kCodeTileBytes = kTileRows * kCodeStride;

// Quantised x in ranges of columns. A range is a sequence of tiles of 32 rows. Missing rows of the last tile
// keep old contents, because their sums are not used.
struct CodeRanges {
  std::byte* codes;    // [range][tile][row][kCodeStride]
  TileScales* scales;  // [tile][group]
  std::int64_t rows;
  std::int64_t ranges;
  std::int64_t tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  std::byte* codes_at(std::int64_t range, std::int64_t tile) const {
    return codes + (range * tiles() + tile) * kCodeTileBytes;
  }
  TileScales* scales_at(std::int64_t group, std::int64_t tile) const {
    return scales + tile * ranges * kRangeGroups + group;
  }
};

void quantise_tile(const IsaKernels& kernels, const QuantSource& source, const CodeRanges& x,
                   std::int64_t first_row, std::int64_t range, std::int64_t tile) {
  QuantX row_codes[kRangeGroups];
  const std::int64_t column = range * kRangeColumns, count = std::min(kRangeColumns, source.cols - column);
  const std::int64_t rows = std::min(kTileRows, x.rows - tile * kTileRows);
  TileScales* const scales = x.scales_at(range * kRangeGroups, tile);
  for (std::int64_t r = 0; r < rows; ++r) {
    kernels.quantise(source.at(first_row + tile * kTileRows + r, column), source.format, row_codes, count,
                     source.shared);
    std::byte* to = x.codes_at(range, tile) + r * kCodeStride;
    for (std::int64_t g = 0; g * kQuantGroup < count; ++g, to += kQuantGroup) {
      std::memcpy(to, row_codes[g].codes, kQuantGroup);
      if (g % source.shared != 0) continue;
      scales[g].scale[r] = row_codes[g].scale;
      for (int part = 0; part < 3; ++part) scales[g].minus_sums[part][r] = row_codes[g].minus_sums[part];
    }
  }
}

// Returns the number of columns in a tile of codes. The number of columns with a common scale must be a
// multiple of it.
std::int64_t tile_columns(const QuantLayout& layout, std::int64_t shared) {
  if (layout.format().subs == 2) return kMatrixBytes / 4;
  const bool pairs = layout.wide() && shared > 1 && layout.block_groups % 2 == 0;
  return pairs ? kMatrixBytes : kMatrixBytes / 2;
}

// Unpacks the codes of the groups [first, last) of a panel.
void unpack(const QuantParts& parts, const QuantLayout& layout, const std::byte* panel, std::int64_t first,
            std::int64_t last, std::byte* codes) {
  for (std::int64_t groups = 0; first < last; first += groups, codes += groups * kQuantGroup * kTileRows) {
    const std::int64_t block = first / layout.block_groups, in_block = first % layout.block_groups;
    groups = std::min(last - first, layout.block_groups - in_block);
    parts.codes(
        panel + block * layout.block_bytes() + layout.header_bytes() + in_block * layout.group_bytes(),
        groups, codes);
  }
}

// Returns the offset of a group in its panel. For the first group of a block, this is the offset of the
// block's header.
std::int64_t offset_of(const QuantLayout& layout, std::int64_t group) {
  return layout.offset(group / layout.block_groups, group % layout.block_groups);
}

void multiply_unit_of_codes(const IsaKernels& kernels, const MatmulArgs& args, const QuantPanels& band,
                            const CodeRanges& x, std::int64_t shared, std::int64_t first_row,
                            const MatmulUnit& unit) {
  alignas(64) float c[kTileMatmulRows * (kUnitColumns + kSumGap)];
  alignas(64) std::byte codes[kRangeColumns * kTileRows];
  const QuantLayout& layout = band.layout;
  const QuantParts& parts = kernels.matrix->quant_parts[static_cast<int>(layout.kind)];
  const std::int64_t c_stride = unit.panels() * layout.width + kSumGap;
  const std::int64_t columns = tile_columns(layout, shared);
  const std::int64_t tiles = (unit.rows() + kTileRows - 1) / kTileRows;
  // Rows of a last tile with at most 16 rows, which needs half of the instructions.
  const std::int64_t last_rows = unit.rows() % kTileRows;
  const std::int64_t apart = tiles > 1 && last_rows <= kMatrixRows ? last_rows : 0;
  std::fill_n(c, unit.rows() * c_stride, 0.0f);
  // With several tiles, the last tile has the same number of rows as the other tiles, even if some of its
  // rows are missing; the buffer of codes has memory for them.
  MatrixTilesInUse in_use(kernels.matrix);
  in_use.shape(std::min(unit.rows(), kTileRows), columns);
  for (std::int64_t range = 0; range < x.ranges; ++range) {
    const std::int64_t first = range * kRangeGroups, last = std::min(first + kRangeGroups, layout.groups());
    const std::int64_t begin = offset_of(layout, first), end = offset_of(layout, last);
    const std::int64_t ahead_bytes = (end - begin) / tiles / (last - first);
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      const std::byte* next = band.panel(0) + next_stretch(unit, panel, begin, end, layout.panel_bytes());
      const std::byte* block = band.panel(panel) + first / layout.block_groups * layout.block_bytes();
      unpack(parts, layout, band.panel(panel), first, last, codes);
      float* const panel_c = c + (panel - unit.panel_begin) * layout.width;
      const auto multiply = [&](std::int64_t row, std::int64_t rows) {
        const std::int64_t tile = (unit.row_begin + row) / kTileRows;
        parts.product({.x = x.codes_at(range, tile),
                       .x_row_stride = kCodeStride,
                       .x_tile_stride = kCodeTileBytes,
                       .scales = x.scales_at(first, tile),
                       .scales_tile_stride = x.scales_at(0, 1) - x.scales_at(0, 0),
                       .w = codes,
                       .block = block,
                       .block_bytes = layout.block_bytes(),
                       .block_groups = layout.block_groups,
                       .first_group = first % layout.block_groups,
                       .groups = last - first,
                       .shared = layout.wide() ? shared : 1,
                       .columns = columns,
                       .rows = rows,
                       .c = panel_c + row * c_stride,
                       .c_stride = c_stride,
                       .ahead = next + row / kTileRows * (end - begin) / tiles,
                       .ahead_bytes = ahead_bytes});
      };
      multiply(0, unit.rows() - apart);
      if (apart > 0) multiply(unit.rows() - apart, apart);
    }
  }
  write_quant_unit(kernels, args, band, first_row, unit, c, c_stride);
}

std::int64_t ranges_of(std::int64_t cols) { return (cols + kRangeColumns - 1) / kRangeColumns; }

}  // namespace

std::size_t tile_quant_scratch_bytes(std::int64_t cols) {
  constexpr std::int64_t kScaleBytes = kRangeGroups * static_cast<std::int64_t>(sizeof(TileScales));
  return static_cast<std::size_t>(kTileMatmulRows / kTileRows * ranges_of(cols) *
                                  (kCodeTileBytes + kScaleBytes));
}

void tile_quant_matmul(CpuStream& stream, const MatmulArgs& args, const QuantSource& source,
                       const std::vector<QuantBand>& bands, LatePanels* late, std::int64_t first_row,
                       std::int64_t rows, std::byte* scratch) {
  const IsaKernels& kernels = stream.kernels();
  CodeRanges x{.codes = scratch, .scales = nullptr, .rows = rows, .ranges = ranges_of(source.cols)};
  x.scales = reinterpret_cast<TileScales*>(scratch + x.ranges * x.tiles() * kCodeTileBytes);
  stream.pool().for_ranges(x.ranges * x.tiles(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      quantise_tile(kernels, source, x, first_row, i / x.tiles(), i % x.tiles());
  });
  for_bands(
      stream, bands, late, rows, rows,
      [&](const QuantBand& band, const auto& body) {
        for_tile_units(stream.pool(), rows, band.layout.panels(), band.layout.width,
                       rows * band.layout.rows * band.layout.cols >= kQuantWorthSharing, body);
      },
      [&](const QuantPanels& panels, const MatmulUnit& unit) {
        multiply_unit_of_codes(kernels, args, panels, x, source.shared, first_row, unit);
      });
}

}  // namespace octavo::cpu
