// Functions for matrix tiles (AMX), in addition to the vectors of avx512_bf16: products of up to 32 rows of
// x with a panel of 32 rows of W, and the products of attention with groups of keys and values.
//
// A tile has up to 16 rows of up to 64 bytes. 16 steps of one vector of a bf16 panel (cpu_weight.h) form a
// tile without repacking. The same is true of panels of byte codes (quant_format.h), where a step is four
// columns, and of groups of keys or values (kv_layout.h). Source files of single instruction sets include
// this header, so it includes almost nothing (see isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // maximum rows of x in a tile
constexpr std::int64_t kMatrixSteps = 16;  // maximum bf16 pairs in a row of a tile
constexpr std::int64_t kShortSteps = 8;    // maximum bf16 pairs in half a row
constexpr std::int64_t kMatrixBytes = 64;  // bytes in a row of a tile

// Scales of quantised x, for all rows of a tile and one group of columns, or the groups that share a scale
// (QuantX).
struct alignas(64) TileScales {
  float scale[2 * kMatrixRows];
  float minus_sums[3][2 * kMatrixRows];
};

// A product of tiles of 32 rows of quantised x and consecutive groups of a panel: c += x W. The last tile may
// have fewer rows, but either all tiles or none have more than 16 rows.
struct CodeTileArgs {
  const std::byte* x;  // signed bytes of the first group; the columns of a row are contiguous
  std::int64_t x_row_stride;
  std::int64_t x_tile_stride;
  const TileScales* scales;  // scales of the first group
  std::int64_t scales_tile_stride;
  const std::byte* w;        // codes of the first group, as QuantParts::codes writes them
  const std::byte* block;    // block of W with the first group
  std::int64_t block_bytes;
  std::int64_t block_groups;
  std::int64_t first_group;  // index of the first group in its block
  std::int64_t groups;
  std::int64_t shared;   // maximum number of groups that share the scales of x and of W
  std::int64_t columns;  // columns in a tile: the row_bytes of begin()
  std::int64_t rows;     // of all tiles
  float* c;
  std::int64_t c_stride;     // floats
  const std::byte* ahead;    // address to prefetch
  std::int64_t ahead_bytes;  // bytes to prefetch per group of a tile
};

// A product of whole tiles of 32 rows of bf16 x and a range of one bf16 panel: c = x W, or c += x W.
struct StripArgs {
  const std::byte* x;  // [tile][block][row][16 pairs]
  std::int64_t tiles;
  const std::byte* w;
  std::int64_t blocks;  // of 16 steps
  float* c;             // [tile * 32][c_stride]
  std::int64_t c_stride;
  bool accumulate;
  // Addresses to prefetch, and the bytes to prefetch from them on for each block of each tile.
  const std::byte* ahead;
  std::int64_t ahead_bytes;
  const std::byte* ahead_x;
  std::int64_t ahead_x_bytes;
};

// Functions for one quantised format. Results are bit-identical to quant_body.h.
struct QuantParts {
  // Writes the codes of consecutive groups of a block as bytes: columns 0 to 3 of every row of W, then
  // columns 4 to 7 of every row, and so on. The zero point is subtracted.
  void (*codes)(const std::byte* group, std::int64_t groups, std::byte* bytes);
  void (*product)(const CodeTileArgs& args);
};

struct MatrixTiles {
  // begin() and end() must be called before and after products, on the thread that computes the products.
  // begin() sets the sizes of tiles until the next begin(). There are 1 to 32 rows of x, with 16, 32 or 64
  // bytes per row. Context switches are slower between begin() and end().
  void (*begin)(std::int64_t rows, std::int64_t row_bytes);
  void (*end)();

  // TileFunctions for up to 16 rows and for up to 32 rows, with bf16 pairs in both operands. x consists of
  // blocks of 16 units, with zeros after the last step. x_row_stride is the number of bytes between rows of
  // a block. Blocks are 16 * x_unit_stride bytes apart. The second 16 rows begin 16 * x_row_stride bytes
  // after the first.
  //
  // Each sum of 16 steps starts at +0, with even and odd columns separate, and is
  // then added to c. Segments begin at a multiple of 16 steps.
  TileFunction bf16[2];
  // The same functions, but with blocks of 8 steps.
  TileFunction short_bf16[2];
  // The same functions for panels of e4m3. Each call converts W to bf16, so they are for few rows of x.
  TileFunction e4m3[2];
  // The same sums as bf16[1], for several tiles.
  void (*strip_bf16)(const StripArgs& args);
  const QuantParts* quant_parts;  // [QuantKind]
  // Copies bytes to memory past the caches, without reading the lines first. Before other threads read them,
  // std::atomic_thread_fence(seq_cst) is needed.
  void (*stream)(const void* from, void* to, std::int64_t bytes);
};

// Keeps tiles in use on this thread, from the first call of shape() to the destructor. If `tiles` is
// nullptr, it does nothing.
class MatrixTilesInUse {
 public:
  explicit MatrixTilesInUse(const MatrixTiles* tiles) : tiles_(tiles) {}
  ~MatrixTilesInUse() {
    if (rows_ > 0) tiles_->end();
  }
  MatrixTilesInUse(const MatrixTilesInUse&) = delete;
  MatrixTilesInUse& operator=(const MatrixTilesInUse&) = delete;

  void shape(std::int64_t rows, std::int64_t row_bytes) {
    if (tiles_ == nullptr || (rows == rows_ && row_bytes == row_bytes_)) return;
    tiles_->begin(rows, row_bytes);
    rows_ = rows;
    row_bytes_ = row_bytes;
  }

 private:
  const MatrixTiles* tiles_;
  std::int64_t rows_ = 0;
  std::int64_t row_bytes_ = 0;
};

extern const MatrixTiles kAmxTiles;
extern const MatrixTiles kModelledTiles;
// Returns the number of tile instructions that the emulation has executed on this thread.
std::int64_t modelled_tile_instructions();

// Returns the feature that the processor or the Linux kernel lacks for kAmxTiles, or "" if nothing is
// missing. The first call requests permission for tiles from Linux.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
