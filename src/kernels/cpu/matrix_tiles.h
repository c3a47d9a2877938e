// What the CPU backend needs from matrix tiles (AMX), beside the vectors of avx512_bf16: products of 16 or 32
// rows of x with a panel of 32 rows of W.
//
// A tile is 16 rows of 64 bytes. A panel of pairs of bf16 (cpu_weight.h) is made of such tiles as it lies: 16
// steps, one vector after another. This header goes into the files of single instruction sets (see isa.h).
#pragma once

#include <string_view>

#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kMatrixRows = 16;   // of x in a tile
constexpr std::int64_t kMatrixSteps = 16;  // pairs of bf16 in a row of a tile

struct MatrixTiles {
  // Around products, on the thread that computes them. Between them the tiles are in use, which the kernel's
  // context switches pay for.
  void (*begin)();
  void (*end)();

  // As TileFunction says, for 16 rows and for 32, with pairs of bf16 in both operands; all rows of c are
  // written. Of x there are blocks of 16 units, zeros past the last step: x_row_stride is that within a
  // block, 16 * x_unit_stride the bytes from block to block, and 16 * x_row_stride from the first 16 rows to
  // the others. Sums: 16 steps from +0 on, those of even and of odd columns apart, join c: segments begin at
  // a multiple of 16 steps.
  TileFunction bf16[2];
};

// Products on tiles from construction to destruction; of nullptr, nothing.
class MatrixTilesInUse {
 public:
  explicit MatrixTilesInUse(const MatrixTiles* tiles) : tiles_(tiles) {
    if (tiles_ != nullptr) tiles_->begin();
  }
  ~MatrixTilesInUse() {
    if (tiles_ != nullptr) tiles_->end();
  }
  MatrixTilesInUse(const MatrixTilesInUse&) = delete;
  MatrixTilesInUse& operator=(const MatrixTilesInUse&) = delete;

 private:
  const MatrixTiles* tiles_;
};

extern const MatrixTiles kAmxTiles;
extern const MatrixTiles kModelledTiles;  // in software

// What this processor or the system's kernel lacks for kAmxTiles, or "". The kernel is asked, once, for the
// permission that a process needs.
std::string_view missing_for_amx();

}  // namespace octavo::cpu
