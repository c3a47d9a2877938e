// y = x W^T + bias with W quantised: x is quantised too, once, and the sums are those of integers.
//
// A row of x becomes codes of 8 bits, with a scale for each 32 columns, or for each 128 where the weights'
// scales are as wide. Blocking (matmul.h) changes nothing but speed.
#include <algorithm>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kStretchGroups = 64;      // of one row: what passes through the first-level cache
constexpr std::int64_t kGroupsAhead = 8;         // fetched by a single tile of some rows and few bits
constexpr std::int64_t kWorthSharing = 1 << 19;  // multiplications that repay waking the other threads
constexpr std::int64_t kQuantisedAtOnce = 2048;  // columns of x

// Bytes from row to row of quantised x; not a power of two, whose lines would meet in the same sets of a
// cache.
std::int64_t x_stride(std::int64_t cols) {
  constexpr std::int64_t kTogether = kQuantGroup * kQuantShared;
  const std::int64_t groups = (cols + kTogether - 1) / kTogether * kQuantShared;
  return (groups + 1) * static_cast<std::int64_t>(sizeof(QuantX));
}

struct QuantisedRows {
  const std::byte* data;
  std::int64_t stride;
  std::int64_t first;  // row of the product
  std::int64_t rows;
  std::int64_t tile_rows;
  std::int64_t shared;  // groups that share a scale
};

void multiply_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantBand& band,
                   const QuantisedRows& x, const MatmulUnit& unit) {
  alignas(64) float c[kUnitRows * kUnitColumns];
  const QuantLayout& layout = band.layout;
  const std::int64_t columns = unit.panels() * layout.width;
  const QuantTileFunction* tiles_of_rows = kernels.quant_tiles[static_cast<int>(layout.kind)];
  const std::int64_t block_groups = layout.block_groups;
  const std::int64_t tiles = (unit.rows() + x.tile_rows - 1) / x.tile_rows;
  // A stretch is whole blocks, or a piece of one.
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
        const std::byte* ahead = nullptr;  // bytes of W that a tile fetches for later ones
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
  const std::int64_t in_band = unit.panel_begin * layout.width;
  write_outputs(kernels, args, c, columns, x.first + unit.row_begin, unit.rows(), band.first_row + in_band,
                std::min(columns, layout.rows - in_band));
}

}  // namespace

std::size_t quant_scratch_bytes(std::int64_t cols) {
  return static_cast<std::size_t>(kMatmulRows * x_stride(cols));
}

std::int64_t QuantWeight::groups_sharing_x() const {
  return std::ranges::all_of(bands_, [](const QuantBand& band) { return band.layout.wide(); }) ? kQuantShared
                                                                                               : 1;
}

void QuantWeight::multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const {
  ThreadPool& pool = stream.pool();
  const IsaKernels& kernels = stream.kernels();
  std::byte* scratch = stream.shared(quant_scratch_bytes(cols()));
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
                    .shared = groups_sharing_x()};
    x.tile_rows = even_tile_rows(x.rows, kQuantRows);
    for_pieces(pool, x.rows, cols(), kQuantisedAtOnce,
               [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                 const std::int64_t from_row = x_rows != nullptr ? x_rows[first + row] : first + row;
                 kernels.quantise(from + from_row * from_stride + column * element_bytes,
                                  format_of(args.x.dtype),
                                  reinterpret_cast<QuantX*>(scratch + row * x.stride) + column / kQuantGroup,
                                  count, x.shared);
               });
    for (const QuantBand& band : bands_)
      for_matmul_units(pool, x.rows, x.tile_rows, band.layout.panels(), band.layout.width,
                       x.rows * band.layout.rows * band.layout.cols >= kWorthSharing,
                       [&](const MatmulUnit& unit) { multiply_unit(kernels, args, band, x, unit); });
  }
}

}  // namespace octavo::cpu
