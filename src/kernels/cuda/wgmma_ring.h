// What products on Hopper share (wgmma_matmul.cu, wgmma_codes.cu).
//
// The rows of w, which are the outputs, are the 64 rows of an instruction, rows of x its 8 to 128 columns: one family of
// instructions from one row to thousands. A slice of kSlice columns is one chain of sums, and slices are added in their
// order, as in matmul.cu: the bits of an output do not depend on how many rows of x a tile has, nor on who computes a
// slice.
//
// Tiles of both operands come through a ring in shared memory. A team of warpgroups has a ring of its own: with few
// rows of x a block has one tile and its teams share out the slices, with many one team computes two tiles of outputs.
#pragma once

#include "kernels/cuda/matmul_rows.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {

constexpr int kTileRows = 64;  // of w

// kN rows of x; kTall tiles of 64 outputs, a warpgroup each; kTeams of so many warpgroups.
template <int kN_, int kTall_, int kTeams_, int kStages_>
struct Shape {
  static constexpr int kN = kN_, kTall = kTall_, kTeams = kTeams_, kStages = kStages_;
  static constexpr int kTeamThreads = kTall * kWarpgroup, kThreads = kTeams * kTeamThreads;
  static constexpr int kOutputs = kTall * kTileRows;
  static constexpr int kTotalBytes = kTeams > 1 ? kN * kTileRows * 4 : 0;
  static_assert(kTall == 1 || kTeams == 1);

  static constexpr std::size_t shared_bytes(int stage_bytes) {
    const std::size_t bytes = kTotalBytes + kTeams * kStages * stage_bytes + kSwizzleBytes;
    return bytes <= (227 << 10) ? bytes : throw "more shared memory than there is";
  }
};

// Where a block's memory begins, so that tiles may lie there.
__device__ inline unsigned char* memory_of_tiles() {
  unsigned char* memory = shared_memory();
#ifdef __CUDACC__
  memory += (kSwizzleBytes - shared_address(memory) % kSwizzleBytes) % kSwizzleBytes;
#endif
  return memory;
}

// Rows of x on their way to a team's stages: kColumns columns of kN rows, tiles of 64 columns side by side.
template <class T, class S, int kColumns>
struct XTiles {
  static constexpr int kBytes = S::kN * kColumns * 2;
  static constexpr int kTileBytes = S::kN * kTileRowBytes;
  static constexpr int kChunks = kColumns / 8;                  // of a row
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;  // of the copies of a thread
  static constexpr int kCopies = (S::kN + kRowsApart - 1) / kRowsApart;

  const MatmulParams& p;
  const int row, chunk;
  const bool aligned;
  const T* x[kCopies];  // null: beyond the rows

  // me: the thread among its team's; first: of the rows.
  __device__ XTiles(const MatmulParams& product, int me, std::int64_t first)
      : p(product), row(me / kChunks), chunk(me % kChunks), aligned(x_aligned<T>(product)) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = row + i * kRowsApart;
      x[i] = r < S::kN && first + r < p.m ? x_row_of<T>(p, first + r) : nullptr;
    }
  }

  // From this column on.
  __device__ void begin(unsigned char* tiles, std::int64_t first) const {
    const std::int64_t column = first + chunk * 8;
    tiles += chunk / 8 * kTileBytes;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = row + i * kRowsApart;
      if (r >= S::kN) break;
      void* to = tiles + swizzled(r, chunk % 8);
      const bool there = x[i] != nullptr && column < p.cols;
      if (aligned) {
        copy_async(to, there ? x[i] + column : p.x.data, there);
      } else {
        *static_cast<uint4*>(to) = there ? load_x(x[i], column, p.cols, false) : uint4{0, 0, 0, 0};
      }
    }
  }
};

// Of several teams, where a thread's totals lie: beside the same thread's of the other teams.
__device__ inline float* totals_of(unsigned char* memory) {
  return reinterpret_cast<float*>(memory) + thread() % kWarpgroup;
}

// Adds slices, one of each team, in their order: to `total`, or to what is together. slice: the team's, of so many.
template <class S>
__device__ inline void add_slices(float (&total)[S::kN / 2], float* together, const float (&sum)[S::kN / 2],
                                  std::int64_t slice, std::int64_t slices) {
  if constexpr (S::kTeams == 1) {
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) total[i] += sum[i];
  } else {
    for (int turn = 0; turn < S::kTeams; ++turn) {
      if (turn == thread() / S::kTeamThreads && slice < slices)
#pragma unroll
        for (int i = 0; i < S::kN / 2; ++i)
          together[i * kWarpgroup] = (slice > 0 ? together[i * kWarpgroup] : 0) + sum[i];
      __syncthreads();
    }
  }
}

// A block's outputs, for rows of x from `row` on and outputs from `output` on.
template <class Y, class S>
__device__ inline void store_totals(const MatmulParams& p, std::int64_t row, std::int64_t output,
                                    const float (&total)[S::kN / 2], const float* together) {
  const int team = thread() / S::kTeamThreads, tall = thread() / kWarpgroup % S::kTall;
  const std::int64_t first = output + tall * kTileRows + warp() % 4 * 16 + lane() / 4;
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) {
    if (S::kTeams > 1 && i / 4 % S::kTeams != team) continue;
    store<Y>(p, row + i / 4 * 8 + lane() % 4 * 2 + i % 2, first + i / 2 % 2 * 8,
             S::kTeams > 1 ? together[i * kWarpgroup] : total[i]);
  }
}

// Blocks that run side by side have few tiles of either operand: so many tiles of x at a time.
constexpr std::int64_t kGrouped = 8;

// Where the block's rows of x and its outputs begin, in a grid of blocks_of().
struct TilePlace {
  std::int64_t row, output;
};
template <class S>
__device__ inline TilePlace place_of_block(const MatmulParams& p) {
  const std::int64_t across = (p.rows + S::kOutputs - 1) / S::kOutputs, down = (p.m + S::kN - 1) / S::kN;
  const std::int64_t group = block_x() / (kGrouped * across) * kGrouped, place = block_x() % (kGrouped * across);
  const std::int64_t height = down - group < kGrouped ? down - group : kGrouped;
  return {(group + place % height) * S::kN, place / height * S::kOutputs};
}
template <class S>
unsigned blocks_of(const MatmulParams& p) {
  return pieces(p.rows, S::kOutputs) * pieces(p.m, S::kN);
}

}  // namespace octavo::cuda
