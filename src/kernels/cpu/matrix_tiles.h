// Functions for matrix tiles (AMX), in addition to the vectors of avx512_bf16: products of up to 32 rows of x
// with a panel of 32 rows of W, and attention's products with groups of keys and values.
//
// A tile has up to 16 rows of up to 64 bytes. Without repacking, 16 steps of one vector of a panel of bf16
// pairs (cpu_weight.h) are a tile. The same is true for panels of byte codes (quant_format.h), where a step
// is four columns, and for groups of keys or values (kv_layout.h). Sources of single instruction sets include
// this header (see isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // maximum number of rows of x in a tile
constexpr std::int64_t kMatrixSteps = 16;  // maximum number of bf16 pairs in a row of a tile
constexpr std::int64_t kShortSteps = 8;    // the same in half a row
constexpr std::int64_t kMatrixBytes = 64;  // bytes in a row of a tile

// Exact sums of codes: sums[r][0 .. 32) = x[r] * W over `blocks` blocks. The size set by begin() is the
// number of columns in a block. The columns of a row of x are contiguous.
struct CodeTileArgs {
  const std::byte* x;  // signed bytes
  std::int64_t x_row_stride;
  const std::byte* w;  // unsigned bytes: columns 0 to 3 of every row of W, then columns 4 to 7 of every row,
                       // and so on
  std::int64_t blocks;
  std::int64_t columns;  // number of columns in a block: row_bytes of begin()
  std::int32_t* sums;    // [rows][32]
};

// Adds to c sums of codes that share scales.
struct QuantJoinArgs {
  const std::int32_t* sums;  // [rows][32]
  const std::byte* x;        // the QuantX of the first row and of the first group in the sums
  std::int64_t x_row_stride;
  const std::byte* block;  // the block of W, whose header contains the scales
  const std::byte* group;  // the group of W, if it has separate scales
  int sub;                 // index of the part of the group
  std::int64_t rows;
  float* c;
  std::int64_t c_stride;  // in floats
};

// Vector code around the tiles, for products of one quantised format; bit-identical to quant_body.h.
struct QuantParts {
  // Writes the codes of consecutive groups as bytes, 32 columns per group. It is nullptr if codes
  // are already bytes in this order.
  void (*codes)(const std::byte* group, std::int64_t groups, std::byte* bytes);
  void (*join)(const QuantJoinArgs& args);
};

struct MatrixTiles {
  // Call these before and after products, on the thread that computes them. begin() sets the sizes of tiles
  // until the next begin(): 1 to 32 rows of x, and 16, 32 or 64 bytes per row. Until end() the tiles are in
  // use, which makes context switches slower.
  void (*begin)(std::int64_t rows, std::int64_t row_bytes);
  void (*end)();

  // TileFunctions for up to 16 rows and for up to 32, with bf16 pairs in both operands. x consists of blocks
  // of 16 units, with zeros after the last step. Rows of a block are x_row_stride bytes apart, blocks 16 *
  // x_unit_stride bytes, and the first 16 rows and the others 16 * x_row_stride bytes. A sum of 16 steps
  // starts from +0, with even and odd columns separate, and is then added to c. Segments begin at a multiple
  // of 16 steps.
  TileFunction bf16[2];
  // As bf16, in blocks of 8 steps.
  TileFunction short_bf16[2];
  void (*codes[2])(const CodeTileArgs& args);
  const QuantParts* quant_parts;  // [QuantKind]
};

// Keeps the tiles of this thread in use, from the first begin() to the destructor. With nullptr it does
// nothing.
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
extern const MatrixTiles kModelledTiles;  // emulated in software
// Number of tile instructions that the emulation has executed on this thread.
std::int64_t modelled_tile_instructions();
extern const QuantParts kQuantParts[kQuantKinds];

// Name of the processor or kernel feature for kAmxTiles that is missing; "": none. The first call requests
// the permission for tiles from the kernel.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
