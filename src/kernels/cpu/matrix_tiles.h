// Functions for matrix tiles (AMX), in addition to the vectors of avx512_bf16: products of up to 32 rows of x
// with a panel of 32 rows of W, and attention's products with groups of keys and values.
//
// A tile has up to 16 rows of up to 64 bytes. 16 steps of one vector of a bf16 panel (cpu_weight.h) form a
// tile without repacking. So do panels of byte codes (quant_format.h), where a step is four columns, and
// groups of keys or values (kv_layout.h). Source files of single instruction sets include this header (see
// isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // maximum number of rows of x in a tile
constexpr std::int64_t kMatrixSteps = 16;  // maximum number of bf16 pairs in a row of a tile
constexpr std::int64_t kShortSteps = 8;    // maximum number of bf16 pairs in half a row
constexpr std::int64_t kMatrixBytes = 64;  // bytes in a row of a tile

// Computes exact sums of codes: sums[r][0 .. 32) = x[r] * W over `blocks` blocks. The argument of begin()
// sets the number of columns in a block. The columns of a row of x are contiguous.
struct CodeTileArgs {
  const std::byte* x;  // signed bytes
  std::int64_t x_row_stride;
  const std::byte* w;  // unsigned bytes: columns 0 to 3 of every row of W, then columns 4 to 7 of every row,
                       // and so on
  std::int64_t blocks;
  std::int64_t columns;  // number of columns in a block: row_bytes of begin()
  std::int32_t* sums;    // [rows][32]
};

// Scales the sums of codes that share scales, and adds them to c.
struct QuantJoinArgs {
  const std::int32_t* sums;  // [rows][32]
  const std::byte* x;        // QuantX of the first row and the first summed group
  std::int64_t x_row_stride;
  const std::byte* block;  // block of W, whose header contains the scales
  const std::byte* group;  // group of W, if it has separate scales
  int sub;                 // index of the part of the group
  std::int64_t rows;
  float* c;
  std::int64_t c_stride;  // in floats
};

// Vector code around the tiles, for products of one quantised format. Results are bit-identical to
// quant_body.h.
struct QuantParts {
  // Writes the codes of consecutive groups as bytes, 32 columns per group; nullptr if codes are already bytes
  // in this order.
  void (*codes)(const std::byte* group, std::int64_t groups, std::byte* bytes);
  void (*join)(const QuantJoinArgs& args);
};

struct MatrixTiles {
  // Called before and after products, on the thread that computes them. begin() sets the sizes of tiles until
  // the next begin(): 1 to 32 rows of x, and 16, 32 or 64 bytes per row. Context switches are slower between
  // begin() and end().
  void (*begin)(std::int64_t rows, std::int64_t row_bytes);
  void (*end)();

  // TileFunctions for up to 16 rows and for up to 32 rows, with bf16 pairs in both operands. x consists of
  // blocks of 16 units, with zeros after the last step. Strides in x: x_row_stride bytes between rows of a
  // block, 16 * x_unit_stride bytes between blocks, 16 * x_row_stride bytes between the first 16 rows and the
  // others. Each sum of 16 steps starts at +0, with even and odd columns separate, and is then added to c.
  // Segments begin at a multiple of 16 steps.
  TileFunction bf16[2];
  // same as bf16, in blocks of 8 steps
  TileFunction short_bf16[2];
  void (*codes[2])(const CodeTileArgs& args);
  const QuantParts* quant_parts;  // [QuantKind]
};

// Keeps tiles in use on this thread, from the first begin() to the destructor. With nullptr it does nothing.
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
extern const MatrixTiles kModelledTiles;  // tiles emulated in software
// Returns the number of tile instructions that the emulation has executed on this thread.
std::int64_t modelled_tile_instructions();
extern const QuantParts kQuantParts[kQuantKinds];

// Returns the feature that the processor or the Linux kernel lacks for kAmxTiles; "" if none is missing. The
// first call requests permission for tiles from Linux.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
