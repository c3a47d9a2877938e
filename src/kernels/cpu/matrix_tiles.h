// Functions of matrix tiles (AMX), in addition to the vectors of avx512_bf16: products of up to 32 rows of x
// with a panel of 32 rows of W, and attention's products with groups of keys and values.
//
// A tile is up to 16 rows of up to 64 bytes. A panel of bf16 pairs (cpu_weight.h) consists of such tiles
// without repacking: 16 steps, one vector after another. The same holds for panels of byte codes
// (quant_format.h), where a step is four columns, and for groups of keys or values (kv_layout.h). Files of
// single instruction sets include this header (see isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // rows of x per tile
constexpr std::int64_t kMatrixSteps = 16;  // bf16 pairs per row of a tile
constexpr std::int64_t kShortSteps = 8;    // per half row
constexpr std::int64_t kMatrixBytes = 64;  // per row of a tile

// Exact sums of codes: sums[r][0 .. 32) = x[r] * W over `blocks` blocks. The tiles' shape gives the number of
// columns per block. The columns of a row of x are contiguous.
struct CodeTileArgs {
  const std::byte* x;  // signed
  std::int64_t x_row_stride;
  const std::byte* w;  // unsigned: four columns of each row of W, then the next four
  std::int64_t blocks;
  std::int64_t columns;  // per block: the shape's row_bytes
  std::int32_t* sums;    // [rows][32]
};

// Adds sums of codes with common scales to c.
struct QuantJoinArgs {
  const std::int32_t* sums;  // [rows][32]
  const std::byte* x;        // QuantX of the first row, and of the first group in the sums
  std::int64_t x_row_stride;
  const std::byte* block;  // block of W, with the scales in its header
  const std::byte* group;  // group of W, if its scales are separate
  int sub;                 // the part of the group
  std::int64_t rows;
  float* c;
  std::int64_t c_stride;  // floats
};

// Work beside the tiles in products of one quantised format, bit-identical to quant_body.h.
struct QuantParts {
  // Writes the codes of neighbouring groups as bytes, 32 columns per group; nullptr: codes already have this
  // layout.
  void (*codes)(const std::byte* group, std::int64_t groups, std::byte* bytes);
  void (*join)(const QuantJoinArgs& args);
};

struct MatrixTiles {
  // Called around products, on the thread that computes them. begin() sets the shape until the next call: 1
  // to 32 rows of x, and blocks of 16, 32 or 64 bytes of each. Until end() the tiles are in use, which makes
  // the kernel's context switches slower.
  void (*begin)(std::int64_t rows, std::int64_t row_bytes);
  void (*end)();

  // TileFunctions for up to 16 rows and for more, with bf16 pairs in both operands. x has blocks of 16 units,
  // with zeros after the last step. The stride in a block is x_row_stride. Blocks are 16 * x_unit_stride
  // bytes apart, and the first 16 rows and the others are 16 * x_row_stride bytes apart. A sum covers 16
  // steps from +0, with even and odd columns apart, and is added to c. Segments begin at a multiple of 16
  // steps.
  TileFunction bf16[2];
  // The same in blocks of 8 steps.
  TileFunction short_bf16[2];
  void (*codes[2])(const CodeTileArgs& args);
  const QuantParts* quant_parts;  // [QuantKind]
};

// Tiles of one thread, from the first shape to destruction; with nullptr it does nothing.
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
extern const MatrixTiles kModelledTiles;  // in software
// Number of tile instructions that the model has executed on this thread.
std::int64_t modelled_tile_instructions();
extern const QuantParts kQuantParts[kQuantKinds];

// The missing processor or kernel feature for kAmxTiles, or "". The first call requests the permission that a
// process needs from the kernel.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
