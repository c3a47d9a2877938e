// Computes y = x W^T + bias with quantised W. x is quantised once, and products are summed as integers.
//
// A row of x becomes 8-bit codes with one scale per 32 columns, or per 128 columns if each scale of the
// weights covers at least 128 columns. Blocking (matmul.h) and matrix tiles, which compute the integer sums
// if there are enough rows, affect only speed.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kStretchGroups = 64;  // groups of a row of x that stay in the L1 cache
// Groups to prefetch if x is one tile with several rows, and codes have few bits.
constexpr std::int64_t kGroupsAhead = 8;
// Number of multiplications above which waking the other threads saves time.
constexpr std::int64_t kWorthSharing = 1 << 19;
constexpr std::int64_t kQuantisedAtOnce = 2048;  // columns of x that are quantised at a time
// Minimum number of rows for matrix tiles. With fewer rows, products on vectors need fewer
// instructions, because tiles require unpacking the codes and adding the sums.
constexpr std::int64_t kLeastOnTiles = 16;
// Groups of a panel that matrix tiles process at a time; these are 16 KB of codes.
constexpr std::int64_t kTileGroups = 16;
constexpr std::int64_t kTileWidth = 2 * kMatrixRows;

// Returns the distance between rows of quantised x, in bytes. It is not a power of two, because rows at
// such distances would share cache sets.
std::int64_t x_stride(std::int64_t cols) {
  constexpr std::int64_t kTogether = kQuantGroup * kQuantShared;
  const std::int64_t groups = (cols + kTogether - 1) / kTogether * kQuantShared;
  return (groups + 1) * static_cast<std::int64_t>(sizeof(QuantX));
}

// Returns the distance between rows of codes in bytes, for matrix tiles.
std::int64_t code_stride(std::int64_t cols) {
  return x_stride(cols) / static_cast<std::int64_t>(sizeof(QuantX)) * kQuantGroup + kMatrixBytes;
}

struct QuantisedRows {
  const std::byte* data;
  std::int64_t stride;
  std::int64_t first;  // index of the first row in the product
  std::int64_t rows;
  std::int64_t tile_rows;
  std::int64_t shared;     // groups that share a scale
  const std::byte* codes;  // codes of the rows for matrix tiles, or nullptr
  std::int64_t code_stride;
};

void write_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantBand& band,
                const QuantisedRows& x, const MatmulUnit& unit, const float* c) {
  const QuantLayout& layout = band.layout;
  const std::int64_t columns = unit.panels() * layout.width, in_band = unit.panel_begin * layout.width;
  write_outputs(kernels, args, c, columns, x.first + unit.row_begin, unit.rows(), band.first_row + in_band,
                std::min(columns, layout.rows - in_band));
}

// Consecutive groups of one block of a panel.
struct TilePiece {
  std::int64_t first;  // index in x of the first group
  std::int64_t groups;
  const std::byte* block;
  const std::byte* group;
  const std::byte* codes;  // codes in the order that tiles read
};

// Multiplies rows of x, from `row` on, by a piece of the panel, and adds the products to c. Groups that
// share their scales are multiplied together.
void multiply_piece(const MatrixTiles& matrix, const QuantLayout& layout, const QuantisedRows& x,
                    std::int64_t row, std::int64_t rows, const TilePiece& w, std::int64_t tile_columns,
                    float* c, std::int64_t c_stride) {
  alignas(64) std::int32_t sums[kTileWidth * kTileWidth];
  const auto multiply = matrix.codes[rows > kMatrixRows ? 1 : 0];
  const auto join = matrix.quant_parts[static_cast<int>(layout.kind)].join;
  const int subs = layout.format().subs;
  std::int64_t together = 1;
  for (std::int64_t g = 0; g < w.groups; g += together) {
    if (layout.wide()) together = std::min(w.groups - g, x.shared);
    for (int sub = 0; sub < subs; ++sub) {
      const std::int64_t column = g * kQuantGroup + sub * kQuantGroup / subs;
      multiply({.x = x.codes + row * x.code_stride + w.first * kQuantGroup + column,
                .x_row_stride = x.code_stride,
                .w = w.codes + column * kTileWidth,
                .blocks = together * kQuantGroup / subs / tile_columns,
                .columns = tile_columns,
                .sums = sums});
      join({.sums = sums,
            .x = x.data + row * x.stride + (w.first + g) * static_cast<std::int64_t>(sizeof(QuantX)),
            .x_row_stride = x.stride,
            .block = w.block,
            .group = w.group + g * layout.group_bytes(),
            .sub = sub,
            .rows = rows,
            .c = c,
            .c_stride = c_stride});
    }
  }
}

// Returns the number of columns in a block of codes for matrix tiles. The number of columns with a common
// scale must be a multiple of it.
std::int64_t tile_columns(const QuantLayout& layout, const QuantisedRows& x) {
  if (layout.format().subs == 2) return kMatrixBytes / 4;
  const bool pairs = layout.wide() && x.shared > 1 && layout.block_groups % 2 == 0;
  return pairs ? kMatrixBytes : kMatrixBytes / 2;
}

// Prepares the pieces of a panel, which begin at group `first`. Unpacks codes that are not bytes. Returns
// the number of pieces.
int pieces_of(const QuantParts& parts, const QuantLayout& layout, const std::byte* panel, std::int64_t first,
              std::int64_t last, TilePiece* pieces, std::byte* codes) {
  int count = 0;
  for (std::int64_t groups = 0; first < last; first += groups, codes += groups * kQuantGroup * kTileWidth) {
    const std::int64_t in_block = first % layout.block_groups;
    groups = std::min(last - first, layout.block_groups - in_block);
    const std::byte* block = panel + first / layout.block_groups * layout.block_bytes();
    const std::byte* group = block + layout.header_bytes() + in_block * layout.group_bytes();
    if (parts.codes != nullptr) parts.codes(group, groups, codes);
    pieces[count++] = {first, groups, block, group, parts.codes != nullptr ? codes : group};
  }
  return count;
}

void multiply_unit_on_tiles(const IsaKernels& kernels, const MatmulArgs& args, const QuantBand& band,
                            const QuantisedRows& x, const MatmulUnit& unit) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  alignas(64) std::byte codes[kTileGroups * kQuantGroup * kTileWidth];
  TilePiece pieces[kTileGroups];
  const QuantLayout& layout = band.layout;
  const QuantParts& parts = kernels.matrix->quant_parts[static_cast<int>(layout.kind)];
  const std::int64_t columns = unit.panels() * layout.width, at_once = tile_columns(layout, x);
  std::fill_n(c, unit.rows() * columns, 0.0f);
  // With several tiles, the last tile is as high as the other tiles; the buffer of codes has memory for it.
  MatrixTilesInUse in_use(kernels.matrix);
  in_use.shape(std::min(unit.rows(), x.tile_rows), at_once);
  for (std::int64_t first = 0; first < layout.groups(); first += kTileGroups) {
    const std::int64_t last = std::min(first + kTileGroups, layout.groups());
    for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
      const int count = pieces_of(parts, layout, band.panel(panel), first, last, pieces, codes);
      for (std::int64_t row = unit.row_begin; row < unit.row_end; row += x.tile_rows)
        for (int i = 0; i < count; ++i)
          multiply_piece(
              *kernels.matrix, layout, x, row, std::min(x.tile_rows, unit.row_end - row), pieces[i], at_once,
              c + (row - unit.row_begin) * columns + (panel - unit.panel_begin) * layout.width, columns);
    }
  }
  write_unit(kernels, args, band, x, unit, c);
}

void multiply_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantBand& band,
                   const QuantisedRows& x, const MatmulUnit& unit) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  const QuantLayout& layout = band.layout;
  const std::int64_t columns = unit.panels() * layout.width;
  const QuantTileFunction* tiles_of_rows = kernels.quant_tiles[static_cast<int>(layout.kind)];
  const std::int64_t block_groups = layout.block_groups;
  const std::int64_t tiles = (unit.rows() + x.tile_rows - 1) / x.tile_rows;
  // A range consists of full blocks, or is a part of one block.
  const std::int64_t stretch = tiles == 1 ? layout.groups() : kStretchGroups;
  const std::int64_t blocks_at_once = std::max<std::int64_t>(1, stretch / block_groups);
  const std::int64_t groups_at_once = std::min(stretch, block_groups);
  for (std::int64_t block = 0; block < layout.blocks(); block += blocks_at_once) {
    const std::int64_t blocks = std::min(blocks_at_once, layout.blocks() - block);
    for (std::int64_t group = 0; group < block_groups; group += groups_at_once) {
      const std::int64_t groups = std::min(groups_at_once, block_groups - group);
      const std::int64_t begin = layout.offset(block, group);
      const std::int64_t end = group + groups < block_groups ? layout.offset(block, group + groups)
                                                             : layout.offset(block + blocks, 0);
      for (std::int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
        const std::byte* ahead = nullptr;  // part of W to prefetch for the next tiles
        std::int64_t ahead_bytes = 0;
        if (tiles > 1) {
          ahead = band.panel(0) + next_stretch(unit, panel, begin, end, layout.panel_bytes());
          ahead_bytes = (end - begin) / tiles;
        } else if (unit.rows() > 1 && layout.code_bits() < 8) {
          ahead = band.panel(panel) + kGroupsAhead * layout.group_bytes();
          ahead_bytes = end - begin;
        }
        for (std::int64_t row = unit.row_begin; row < unit.row_end;
             row += x.tile_rows, ahead += ahead_bytes) {
          const std::int64_t rows = std::min(x.tile_rows, unit.row_end - row);
          tiles_of_rows[rows - 1]({
              .x = x.data + row * x.stride +
                   (block * block_groups + group) * static_cast<std::int64_t>(sizeof(QuantX)),
              .x_row_stride = x.stride,
              .x_shared = x.shared,
              .w = band.panel(panel) + block * layout.block_bytes(),
              .blocks = blocks,
              .block_bytes = layout.block_bytes(),
              .first_group = group,
              .groups = groups,
              .c = c + (row - unit.row_begin) * columns + (panel - unit.panel_begin) * layout.width,
              .c_stride = columns,
              .accumulate = block + group > 0,
              .ahead = ahead,
              .ahead_bytes = ahead_bytes / (blocks * groups),
          });
        }
      }
    }
  }
  write_unit(kernels, args, band, x, unit, c);
}

}  // namespace

std::size_t quant_scratch_bytes(const IsaKernels& kernels, std::int64_t cols) {
  return static_cast<std::size_t>(kMatmulRows *
                                  (x_stride(cols) + (kernels.matrix != nullptr ? code_stride(cols) : 0)));
}

std::int64_t QuantWeight::groups_sharing_x() const {
  return std::ranges::all_of(bands_, [](const QuantBand& band) { return band.layout.wide(); }) ? kQuantShared
                                                                                               : 1;
}

void QuantWeight::multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const {
  ThreadPool& pool = stream.pool();
  const IsaKernels& kernels = stream.kernels();
  std::byte* scratch = stream.shared(quant_scratch_bytes(kernels, cols()));
  const auto* from = static_cast<const std::byte*>(args.x.data);
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t from_stride = args.x.stride[0] * element_bytes;
  const std::int64_t m = args.y.size(0);
  for (std::int64_t first = 0; first < m; first += kMatmulRows) {
    QuantisedRows x{.data = scratch,
                    .stride = x_stride(cols()),
                    .first = first,
                    .rows = std::min(kMatmulRows, m - first),
                    .tile_rows = 0,
                    .shared = groups_sharing_x(),
                    .codes = nullptr,
                    .code_stride = code_stride(cols())};
    std::byte* const codes = scratch + kMatmulRows * x.stride;
    const bool on_tiles = kernels.matrix != nullptr && x.rows >= kLeastOnTiles;
    if (on_tiles) x.codes = codes;
    x.tile_rows = on_tiles ? 2 * kMatrixRows : even_tile_rows(x.rows, kQuantRows);
    for_pieces(pool, x.rows, cols(), kQuantisedAtOnce,
               [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                 const std::int64_t from_row = x_rows != nullptr ? x_rows[first + row] : first + row;
                 QuantX* to = reinterpret_cast<QuantX*>(scratch + row * x.stride) + column / kQuantGroup;
                 kernels.quantise(from + from_row * from_stride + column * element_bytes,
                                  format_of(args.x.dtype), to, count, x.shared);
                 if (!on_tiles) return;
                 for (std::int64_t i = 0; i < count; i += kQuantGroup, ++to)
                   std::memcpy(codes + row * x.code_stride + column + i, to->codes, kQuantGroup);
               });
    for (const QuantBand& band : bands_)
      for_matmul_units(pool, x.rows, x.tile_rows, band.layout.panels(), band.layout.width,
                       x.rows * band.layout.rows * band.layout.cols >= kWorthSharing,
                       [&](const MatmulUnit& unit) {
                         (on_tiles ? multiply_unit_on_tiles : multiply_unit)(kernels, args, band, x, unit);
                       });
  }
}

}  // namespace octavo::cpu
