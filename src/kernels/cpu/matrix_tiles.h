// What the CPU backend needs from matrix tiles (AMX), beside the vectors of avx512_bf16: products of up to 32
// rows of x with a panel of 32 rows of W, and attention's with groups of keys and values.
//
// A tile is up to 16 rows of up to 64 bytes. A panel of pairs of bf16 (cpu_weight.h) is made of such tiles as
// it lies: 16 steps, one vector after another. So is one of codes of a byte (quant_format.h), a step being
// four columns, and so are groups of keys or values (kv_layout.h). This header goes into the files of single
// instruction sets (see isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // of x in a tile
constexpr std::int64_t kMatrixSteps = 16;  // pairs of bf16 in a row of a tile
constexpr std::int64_t kShortSteps = 8;    // in half a row
constexpr std::int64_t kMatrixBytes = 64;  // of a row of a tile

// Exact sums of codes: sums[r][0 .. 32) = x[r] * W over `blocks` blocks of as many columns as the tiles'
// shape says. Rows of x are columns one after another.
struct CodeTileArgs {
  const std::byte* x;  // signed
  std::int64_t x_row_stride;
  const std::byte* w;  // unsigned: four columns of each row of W, then the next four
  std::int64_t blocks;
  std::int64_t columns;  // of a block: the shape's row_bytes
  std::int32_t* sums;    // [rows][32]
};

// Sums of codes that share their scales join c.
struct QuantJoinArgs {
  const std::int32_t* sums;  // [rows][32]
  const std::byte* x;        // QuantX of the first row, and of the first group that the sums are of
  std::int64_t x_row_stride;
  const std::byte* block;  // of W, whose header has the scales
  const std::byte* group;  // of W, where it has scales of its own
  int sub;                 // the part of the group
  std::int64_t rows;
  float* c;
  std::int64_t c_stride;  // floats
};

// What goes on beside the tiles in products of one quantised format: as quant_body.h has it, to the bit.
struct QuantParts {
  // Neighbouring groups' codes as bytes, each group's 32 columns after the last's; nullptr: they lie so.
  void (*codes)(const std::byte* group, std::int64_t groups, std::byte* bytes);
  void (*join)(const QuantJoinArgs& args);
};

struct MatrixTiles {
  // Around products, on the thread that computes them: what is multiplied until the next call has so many
  // rows of x, 1 to 32, and blocks of so many bytes of each, 16, 32 or 64. From the first of these calls to
  // the end the tiles are in use, which the kernel's context switches pay for.
  void (*begin)(std::int64_t rows, std::int64_t row_bytes);
  void (*end)();

  // As TileFunction says, for up to 16 rows and for more, with pairs of bf16 in both operands. Of x there are
  // blocks of 16 units, zeros past the last step: x_row_stride is that within a block, 16 * x_unit_stride the
  // bytes from block to block, and 16 * x_row_stride from the first 16 rows to the others. Sums: 16 steps
  // from +0 on, those of even and of odd columns apart, join c: segments begin at a multiple of 16 steps.
  TileFunction bf16[2];
  // The same in blocks of 8 steps.
  TileFunction short_bf16[2];
  void (*codes[2])(const CodeTileArgs& args);
  const QuantParts* quant_parts;  // [QuantKind]
};

// The tiles of one thread, from the first shape to destruction; of nullptr, nothing.
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
// How many instructions on tiles the model has carried out on this thread.
std::int64_t modelled_tile_instructions();
extern const QuantParts kQuantParts[kQuantKinds];

// What this processor or the system's kernel lacks for kAmxTiles, or "". The kernel is asked, once, for the
// permission that a process needs.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
