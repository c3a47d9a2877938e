// Computes y = x W^T + bias with quantised W. x is quantised once, and products are summed as integers.
//
// A row of x becomes 8-bit codes with one scale per 32 columns, or per 128 columns if each scale of the
// weights covers at least 128 columns. Blocking (matmul.h) and matrix tiles, which compute the integer sums
// if there are enough rows, affect only speed.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_product.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kStretchGroups = 64;  // groups of a row of x that stay in the L1 cache
// Prefetch distance in groups, if x is one tile with several rows, and codes have fewer than 8 bits.
constexpr std::int64_t kGroupsAhead = 8;
constexpr std::int64_t kQuantisedAtOnce = 2048;  // columns of x that are quantised at a time
// Minimum number of rows for matrix tiles. With fewer rows, products on vectors need fewer
// instructions, because tiles require unpacking the codes and adding the sums.
constexpr std::int64_t kLeastOnTiles = 16;

// Returns the stride of quantised x in bytes. The stride includes padding, so that it is not a power of two.
// Otherwise all rows would be in the same cache sets.
std::int64_t x_stride(std::int64_t cols) {
  constexpr std::int64_t kTogether = kQuantGroup * kQuantShared;
  const std::int64_t groups = (cols + kTogether - 1) / kTogether * kQuantShared;
  return (groups + 1) * static_cast<std::int64_t>(sizeof(QuantX));
}

struct QuantisedRows {
  const std::byte* data;
  std::int64_t stride;
  std::int64_t first;  // index of the first row of this batch among all rows of the product
  std::int64_t rows;
  std::int64_t tile_rows;
  std::int64_t shared;  // groups that share a scale
};

void multiply_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantPanels& band,
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
  write_quant_unit(kernels, args, band, x.first, unit, c, columns);
}

}  // namespace

void write_quant_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantPanels& band,
                      std::int64_t first_row, const MatmulUnit& unit, const float* c, std::int64_t c_stride) {
  const QuantLayout& layout = band.layout;
  const std::int64_t output = unit.panel_begin * layout.width;
  write_outputs(kernels, args, c, c_stride, first_row + unit.row_begin, unit.rows(), band.first_row + output,
                std::min(unit.panels() * layout.width, layout.rows - output));
}

std::size_t quant_scratch_bytes(const IsaKernels& kernels, std::int64_t cols) {
  const auto bytes = static_cast<std::size_t>(kMatmulRows * x_stride(cols));
  return kernels.matrix != nullptr ? std::max(bytes, tile_quant_scratch_bytes(cols)) : bytes;
}

std::int64_t QuantWeight::groups_sharing_x() const {
  return std::ranges::all_of(bands_, [](const QuantBand& band) { return band.layout.wide(); }) ? kQuantShared
                                                                                               : 1;
}

void QuantWeight::multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const {
  ThreadPool& pool = stream.pool();
  const IsaKernels& kernels = stream.kernels();
  std::byte* scratch = stream.shared(quant_scratch_bytes(kernels, cols()));
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.x.dtype));
  const QuantSource source{.data = static_cast<const std::byte*>(args.x.data),
                           .format = format_of(args.x.dtype),
                           .element_bytes = element_bytes,
                           .stride = args.x.stride[0] * element_bytes,
                           .rows = x_rows,
                           .cols = cols(),
                           .shared = groups_sharing_x()};
  const std::int64_t m = args.y.size(0);
  LatePanels* const late = written() ? nullptr : late_.get();
  if (kernels.matrix != nullptr && m >= kLeastOnTiles) {
    const std::int64_t together = tile_matmul_rows(m);
    for (std::int64_t first = 0; first < m; first += together)
      tile_quant_matmul(stream, args, source, bands_, late, first, std::min(together, m - first), scratch);
    return;
  }
  for (std::int64_t first = 0; first < m; first += kMatmulRows) {
    const std::int64_t rows = std::min(kMatmulRows, m - first);
    const QuantisedRows x{.data = scratch,
                          .stride = x_stride(cols()),
                          .first = first,
                          .rows = rows,
                          .tile_rows = even_tile_rows(rows, kQuantRows),
                          .shared = source.shared};
    for_pieces(pool, x.rows, cols(), kQuantisedAtOnce,
               [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                 kernels.quantise(source.at(first + row, column), source.format,
                                  reinterpret_cast<QuantX*>(scratch + row * x.stride) + column / kQuantGroup,
                                  count, x.shared);
               });
    for_bands(
        stream, bands_, late, x.rows, unit_rows_of(x.tile_rows),
        [&](const QuantBand& band, const auto& body) {
          for_matmul_units(pool, x.rows, x.tile_rows, band.layout.panels(), band.layout.width,
                           x.rows * band.layout.rows * band.layout.cols >= kQuantWorthSharing, body);
        },
        [&](const QuantPanels& panels, const MatmulUnit& unit) {
          multiply_unit(kernels, args, panels, x, unit);
        });
  }
}

}  // namespace octavo::cpu
