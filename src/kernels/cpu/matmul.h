// Blocking of matrix products, for unquantised and quantised weights.
//
// Blocks follow Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008). A unit
// of work multiplies some panels of W by some tiles of x, one range of k at a time. The range of x stays in
// the L2 cache while the same range of each panel passes through L1. Only the first tile loads the panel's
// range from memory; while the other tiles multiply, they prefetch the next range. If x is a single tile, a
// unit reads its panels from begin to end, because sequential reads are fastest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/ops.h"

namespace octavo::cpu {

// maximum rows of x that are packed and multiplied together
constexpr std::int64_t kMatmulRows = 384;

constexpr std::int64_t kUnitRows = 192;     // maximum rows of x in a unit of work
constexpr std::int64_t kUnitColumns = 256;  // maximum outputs in a unit of work

// Bytes of padding after each packed row of x. Without it, rows of 1024 columns would share a few sets of the
// L1 cache.
constexpr std::int64_t kRowGap = 64;

// Returns the bytes of working memory for a product with `cols` columns. Matrix tiles round cols up to a
// multiple of 32.
constexpr std::size_t matmul_scratch_bytes(std::int64_t cols) {
  return static_cast<std::size_t>(kMatmulRows * ((cols + 31) / 32 * 32 * 4 + kRowGap));
}

// Returns the number of rows of x per tile, at most `most`, such that all tiles have nearly the same
// height. If there are more than most / 2 rows, there are at least two tiles, because multiplying then
// takes longer than loading W.
constexpr std::int64_t even_tile_rows(std::int64_t rows, std::int64_t most) {
  const std::int64_t tiles = std::max<std::int64_t>((rows + most - 1) / most, rows > most / 2 ? 2 : 1);
  return (rows + tiles - 1) / tiles;
}

// Product of the rows [row_begin, row_end) of x and the panels [panel_begin, panel_end). row_begin is the
// first row of a tile.
struct MatmulUnit {
  std::int64_t row_begin;
  std::int64_t row_end;
  std::int64_t panel_begin;
  std::int64_t panel_end;
  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t panels() const { return panel_end - panel_begin; }
};

// Returns the byte offset in W to prefetch while a unit processes the bytes [begin, end) of a panel. At the
// end of the unit, this is the offset that the thread probably needs next.
constexpr std::int64_t next_stretch(const MatmulUnit& unit, std::int64_t panel, std::int64_t begin,
                                    std::int64_t end, std::int64_t panel_bytes) {
  if (panel + 1 < unit.panel_end) return (panel + 1) * panel_bytes + begin;
  return end < panel_bytes ? unit.panel_begin * panel_bytes + end : unit.panel_end * panel_bytes;
}

// Returns the maximum number of rows of a unit, as whole tiles.
constexpr std::int64_t unit_rows_of(std::int64_t tile_rows) {
  return std::max<std::int64_t>(1, kUnitRows / tile_rows) * tile_rows;
}

// Calls body(unit) for all units of a product. If `shared`, all threads of the pool take part.
template <class Body>
void for_matmul_units(ThreadPool& pool, std::int64_t rows, std::int64_t tile_rows, std::int64_t panels,
                      std::int64_t width, bool shared, Body&& body) {
  // Several units per thread make threads end at about the same time. Without other threads, there are as
  // few units as possible.
  constexpr std::int64_t kUnitsPerThread = 16;
  const std::int64_t unit_rows = unit_rows_of(tile_rows);
  const std::int64_t row_blocks = (rows + unit_rows - 1) / unit_rows;
  const std::int64_t wanted = shared && pool.size() > 1 ? kUnitsPerThread * pool.size() : 1;
  const std::int64_t unit_panels =
      std::clamp<std::int64_t>(panels * row_blocks / wanted, 1, kUnitColumns / width);
  const std::int64_t units = row_blocks * ((panels + unit_panels - 1) / unit_panels);
  pool.for_ranges(units, shared ? 1 : units, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t row = unit % row_blocks * unit_rows;
      const std::int64_t panel = unit / row_blocks * unit_panels;
      body(MatmulUnit{row, std::min(row + unit_rows, rows), panel, std::min(panel + unit_panels, panels)});
    }
  });
}

// Maximum rows of x that matrix tiles multiply together.
constexpr std::int64_t kTileMatmulRows = 512;
constexpr std::int64_t kTileRows = 32;  // rows of x in a tile
// Padding in floats after each row of sums. Without it, a row stride that is a power of two would put all
// rows into the same cache sets.
constexpr std::int64_t kSumGap = 16;

// Returns the number of rows of x to multiply together: m is divided into nearly equal parts.
constexpr std::int64_t tile_matmul_rows(std::int64_t m) {
  const std::int64_t parts = (m + kTileMatmulRows - 1) / kTileMatmulRows;
  return ((m + parts - 1) / parts + kTileRows - 1) / kTileRows * kTileRows;
}

// Calls body(unit) for all units of a product on matrix tiles. Units are as large as possible (at most all
// rows and kUnitColumns outputs), because larger units load fewer bytes into L2 in total. But there are
// several units per thread, so that all threads end at about the same time.
template <class Body>
void for_tile_units(ThreadPool& pool, std::int64_t rows, std::int64_t panels, std::int64_t width, bool shared,
                    Body&& body) {
  constexpr std::int64_t kUnitsPerThread = 4, kFewRows = 128;
  const auto parts = [](std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; };
  std::int64_t unit_rows = parts(rows, kTileRows) * kTileRows, unit_panels = kUnitColumns / width;
  const auto units = [&] { return parts(rows, unit_rows) * parts(panels, unit_panels); };
  while (shared && pool.size() > 1 && units() < kUnitsPerThread * pool.size()) {
    if (unit_rows > kFewRows && unit_rows >= unit_panels * width) {
      unit_rows = parts(unit_rows / 2, kTileRows) * kTileRows;
    } else if (unit_panels > 1) {
      unit_panels /= 2;
    } else {
      break;
    }
  }
  const std::int64_t row_blocks = parts(rows, unit_rows);
  pool.for_ranges(units(), shared ? 1 : units(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % row_blocks * unit_rows, panel = i / row_blocks * unit_panels;
      body(MatmulUnit{row, std::min(row + unit_rows, rows), panel, std::min(panel + unit_panels, panels)});
    }
  });
}

// Writes sums (rows of `stride` floats) plus the bias to y. `row` and `output` are the first row and column
// in y.
void write_outputs(const IsaKernels& kernels, const MatmulArgs& args, const float* sums, std::int64_t stride,
                   std::int64_t row, std::int64_t rows, std::int64_t output, std::int64_t outputs);

}  // namespace octavo::cpu
