// y = x * w^T + bias on Hopper, for many rows of x and 16-bit numbers: a thread block computes 128 outputs of
// 192 rows.
//
// The L2 cache limits the speed of such products. So all thread blocks of a cluster use the same rows of x,
// and each thread block loads a part of these rows for all. A separate warpgroup starts the copies (tensor
// memory accelerator) when all thread blocks of the cluster have read the previous tile. Sums have the same
// order as in wgmma_matmul.cu.
#include "kernels/cuda/tile_copies.h"
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

using S = Shape<192, 2, 1, 5>;
// shape of a cluster, with the outputs of all its thread blocks
using Together = Shape<S::kN, S::kTall * kCluster, 1, S::kStages>;
constexpr int kStageBytes = (S::kOutputs + S::kN) * kTileRowBytes;
constexpr std::size_t kBytes = S::shared_bytes(kStageBytes) + 2 * S::kStages * sizeof(TileBarrier);
constexpr int kSharedRows = S::kN / kCluster;  // number of rows of x that a thread block loads for all thread
                                               // blocks
[[maybe_unused]] constexpr int kSteps = static_cast<int>(kSlice / kTileColumns);

constexpr int kThreads = S::kThreads + kWarpgroup;  // the last warpgroup loads tiles

#if !defined(__CUDACC__) || OCTAVO_WGMMA

// Registers per thread. All warpgroups start with the same number; then the loading warpgroup releases most
// of its registers.
constexpr int kBringing = 24, kMultiplying = 240;

// Stages of a thread block in shared memory, and their barriers.
struct WideStages {
  unsigned char* const memory;
  TileBarrier* const full;  // per stage: the tiles have arrived
  // per stage: all thread blocks of the cluster have read the tiles
  TileBarrier* const read = full + S::kStages;

  __device__ explicit WideStages(unsigned char* begin)
      : memory(begin), full(reinterpret_cast<TileBarrier*>(begin + S::kStages * kStageBytes)) {}

  __device__ unsigned char* at(int step) const { return memory + step % S::kStages * kStageBytes; }

  __device__ void begin_barriers() const {
    for (int i = 0; i < S::kStages; ++i) {
      begin_barrier(full + i, 1);
      begin_barrier(read + i, kCluster * S::kThreads / kWarp);
    }
  }
  __device__ void wait_for_tiles(int step) const { wait_phase(full + step % S::kStages, step / S::kStages); }
  // Waits until all thread blocks have read the previous contents of this step's stage.
  __device__ void wait_for_room(int step) const {
    if (step >= S::kStages) wait_phase(read + step % S::kStages, step / S::kStages - 1);
  }
  // Reports that the warp has read the step's tiles, to this thread block and to the others that loaded them.
  __device__ void has_read(int step) const {
    __syncwarp();
    if (lane() == 0)
      for (int block = 0; block < kCluster; ++block) arrive_at(read + step % S::kStages, block);
  }
};

// Copies all tiles of w for this thread block, and its part of the tiles of x for all thread blocks. One
// thread calls it.
__device__ void bring_tiles(const WideStages& stages, int steps, const TileMap& w, std::int64_t output, const TileMap& x,
                            std::int64_t row) {
  const int first = block_of_cluster() * kSharedRows;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    TileBarrier* const barrier = stages.full + step % S::kStages;
    stages.wait_for_room(step);
    arrive_and_expect(barrier, kStageBytes);
    copy_tile(stages.at(step), w, output, std::int64_t{step} * kTileColumns, barrier);
    copy_tile_to_all(stages.at(step) + (S::kOutputs + first) * kTileRowBytes, x, row + first,
                     std::int64_t{step} * kTileColumns, barrier);
  }
}

// Computes the sums of a warpgroup, slice by slice.
template <class T>
__device__ void multiply_all(const WideStages& stages, int steps, float (&total)[S::kN / 2]) {
  float sum[S::kN / 2];
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) sum[i] = total[i] = 0;
#pragma unroll 1
  for (int step = 0; step < steps;) {
    const int end = step + kSteps < steps ? step + kSteps : steps;  // end of the slice
#pragma unroll 1
    for (const int first = step; step < end; ++step) {
      stages.wait_for_tiles(step);
      __syncwarp();
      const unsigned char* const w = stages.at(step) + thread() / kWarpgroup * kTileRows * kTileRowBytes;
      const unsigned char* const x = stages.at(step) + S::kOutputs * kTileRowBytes;
      begin_products();
#pragma unroll
      for (int k = 0; k < kTileColumns / 16; ++k)
        multiply_tiles<T, S::kN>(sum, operand(w + k * 32), operand(x + k * 32), step > first || k > 0);
      commit_products();
      wait_products<1>(sum);
      if (step > first) stages.has_read(step - 1);
    }
    wait_products<0>(sum);
    stages.has_read(step - 1);
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) total[i] += sum[i];
  }
}

#endif

template <class T, class Y>
__global__ void OCTAVO_CLUSTER __launch_bounds__(kThreads, 1)
    wgmma_wide_kernel(MatmulParams p, const OCTAVO_PARAMETER TileMap w_tiles, const OCTAVO_PARAMETER TileMap x_tiles) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  const WideStages stages(memory_of_tiles());
  const TileOrigin origin = origin_of_tile<Together>(p, block_x() / kCluster);
  const std::int64_t output = origin.output + block_of_cluster() * S::kOutputs;
  const int steps = static_cast<int>((p.cols + kTileColumns - 1) / kTileColumns);
  if (thread() == 0) stages.begin_barriers();
  wait_for_kernels();
  cluster_barrier();

  // A thread block must not end while another thread block of the cluster may still arrive at its barriers.
  if (thread() >= S::kThreads) {
    give_registers<kBringing>();
    if (thread() == S::kThreads) bring_tiles(stages, steps, w_tiles, output, x_tiles, origin.row);
    cluster_barrier();
  } else {
    take_registers<kMultiplying>();
    float total[S::kN / 2];
    multiply_all<T>(stages, steps, total);
    cluster_barrier();
    store_totals<Y, S>(p, origin.row, output, total, nullptr);
  }
#endif
}

}  // namespace

std::int64_t wide_time(const MatmulParams& p) {
  // Rows that overlap in memory (SoundTower) are left to wgmma_matmul.cu, because the definition of tensor
  // maps requires a stride of at least one row.
  const bool takes = p.heads == 1 && p.x_rows == nullptr && p.x.stride % 8 == 0 && p.x.stride >= p.cols &&
                     reinterpret_cast<std::uintptr_t>(p.x.data) % 16 == 0;
  if (!takes) return std::numeric_limits<std::int64_t>::max();
  return schedule_of<S>(p, 1, (S::kOutputs + kSharedRows) * kTileRowBytes * kSteps, false).time;
}

void wgmma_wide(StreamHandle stream, const MatmulParams& p) {
  const TileMap w = tile_map({p.w.data, p.rows, p.cols, p.w.stride, S::kOutputs});
  const TileMap x = tile_map({p.x.data, p.m, p.cols, p.x.stride * 2, kSharedRows});
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2) {
      const auto run = [&](void (*kernel)(MatmulParams, TileMap, TileMap)) {
        allow_shared(kernel, kBytes);
        launch(stream, {blocks_of<Together>(p) * kCluster}, kThreads, kBytes, kernel, p, w, x);
      };
      p.y.format == Format::f32 ? run(wgmma_wide_kernel<T, float>) : run(wgmma_wide_kernel<T, T>);
    }
  });
}

}  // namespace octavo::cuda
