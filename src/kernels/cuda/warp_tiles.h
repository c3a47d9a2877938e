// Tiles of matrix products whose warps multiply with mma.sync (matmul.cu, fp8_matmul.cu).
//
// A Tile is the part of a warp: kTall * 16 rows of x times kWide * 8 rows of w. multiply(p, slice) sets `sum`
// to the sums of one slice. Missing rows repeat the last row, and their results are not stored.
#pragma once

#include "kernels/cuda/matmul_rows.h"

namespace octavo::cuda {

template <int kTall_, int kWide_>
struct WarpTile {
  static constexpr int kTall = kTall_, kWide = kWide_;
  float sum[kTall][kWide][4];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kTall; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[i][j][e] = 0;
  }
};

// For up to 16 rows of x: a thread block computes 8 outputs of each row. Its warps process the slices
// alternately, and add their sums through shared memory.
constexpr int kNarrowWarps = 8;

template <class Tile, class Y>
__device__ inline void narrow_tile(const MatmulParams& p, std::int64_t row, std::int64_t column) {
  OCTAVO_SHARED(float, slices, [kNarrowWarps][kWarp][4]);
  const std::int64_t count = (p.cols + kSlice - 1) / kSlice;
  Tile tile(p, row, column);
  float total[4] = {0, 0, 0, 0};
  for (std::int64_t first = 0; first < count; first += kNarrowWarps) {
    if (first + warp() < count) {
      tile.multiply(p, first + warp());
#pragma unroll
      for (int e = 0; e < 4; ++e) slices[warp()][lane()][e] = tile.sum[0][0][e];
    }
    __syncthreads();
    for (std::int64_t s = first; warp() == 0 && s < first + kNarrowWarps && s < count; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) total[e] += slices[s - first][lane()][e];
    __syncthreads();
  }
  if (warp() > 0) return;
#pragma unroll
  for (int e = 0; e < 4; ++e)
    store<Y>(p, row + lane() / 4 + e / 2 * 8, column + lane() % 4 * 2 + e % 2, total[e]);
}

// For many rows of x: a thread block of eight warps computes 64 x 128 outputs; each warp computes 32 x 32.
constexpr int kWideRows = 64, kWideColumns = 128, kWarpSide = 32;
constexpr int kWideWarps = kWideRows / kWarpSide * (kWideColumns / kWarpSide);

template <class Tile, class Y>
__device__ inline void wide_tile(const MatmulParams& p) {
  constexpr int kTall = Tile::kTall, kWide = Tile::kWide, kAcross = kWideColumns / kWarpSide;
  static_assert(kTall * 16 == kWarpSide && kWide * 8 == kWarpSide);
  const std::int64_t row = block_y() * kWideRows + warp() / kAcross * kWarpSide;
  const std::int64_t column = block_x() * kWideColumns + warp() % kAcross * kWarpSide;
  if (row >= p.m || column >= p.rows) return;
  Tile tile(p, row, column);
  float total[kTall][kWide][4];
#pragma unroll
  for (int i = 0; i < kTall; ++i)
#pragma unroll
    for (int j = 0; j < kWide; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) total[i][j][e] = 0;
  for (std::int64_t slice = 0; slice * kSlice < p.cols; ++slice) {
    tile.multiply(p, slice);
#pragma unroll
    for (int i = 0; i < kTall; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) total[i][j][e] += tile.sum[i][j][e];
  }
#pragma unroll
  for (int i = 0; i < kTall; ++i)
#pragma unroll
    for (int j = 0; j < kWide; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        store<Y>(p, row + i * 16 + lane() / 4 + e / 2 * 8, column + j * 8 + lane() % 4 * 2 + e % 2,
                 total[i][j][e]);
}

}  // namespace octavo::cuda
