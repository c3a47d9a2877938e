// y = x * w^T + bias on Hopper for many rows of x, numbers of 16 bits: a block has 128 outputs of 192 rows.
//
// Blocks of such products wait for L2. So those of a cluster have the same rows of x, and each brings its share of them to
// all; tiles come by the tensor memory accelerator, for which one thread asks. Sums as in wgmma_matmul.cu.
#include "kernels/cuda/tile_copies.h"
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

using S = Shape<192, 2, 1, 5>;
using Together = Shape<S::kN, S::kTall * kCluster, 1, S::kStages>;  // the outputs of a cluster
constexpr int kStageBytes = (S::kOutputs + S::kN) * kTileRowBytes;
constexpr std::size_t kBytes = S::shared_bytes(kStageBytes) + 2 * S::kStages * sizeof(TileBarrier);
constexpr int kSharedRows = S::kN / kCluster;  // of x, that a block brings to all
[[maybe_unused]] constexpr int kSteps = static_cast<int>(kSlice / kTileColumns);

template <class T, class Y>
__global__ void OCTAVO_CLUSTER __launch_bounds__(S::kThreads, 1)
    wgmma_wide_kernel(MatmulParams p, const OCTAVO_PARAMETER TileMap w_tiles, const OCTAVO_PARAMETER TileMap x_tiles) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  unsigned char* const memory = memory_of_tiles();
  TileBarrier* const full = reinterpret_cast<TileBarrier*>(memory + S::kStages * kStageBytes);  // of a stage
  TileBarrier* const read = full + S::kStages;                                                  // by all of the cluster
  const int rank = block_of_cluster();
  const TilePlace place = place_of_tile<Together>(p, block_x() / kCluster);
  const std::int64_t output = place.output + rank * S::kOutputs;
  const int steps = static_cast<int>((p.cols + kTileColumns - 1) / kTileColumns);
  const auto stage = [&](int step) { return memory + step % S::kStages * kStageBytes; };
  const auto load = [&](int step) {
    TileBarrier* const barrier = full + step % S::kStages;
    arrive_and_expect(barrier, kStageBytes);
    copy_tile(stage(step), w_tiles, output, std::int64_t{step} * kTileColumns, barrier);
    const int first = rank * kSharedRows;
    copy_tile_to_all(stage(step) + (S::kOutputs + first) * kTileRowBytes, x_tiles, place.row + first,
                     std::int64_t{step} * kTileColumns, barrier);
  };
  const auto has_read = [&](int step) {
    __syncwarp();
    if (lane() == 0)
      for (int block = 0; block < kCluster; ++block) arrive_at(read + step % S::kStages, block);
  };

  if (thread() == 0)
    for (int i = 0; i < S::kStages; ++i) {
      begin_barrier(full + i, 1);
      begin_barrier(read + i, kCluster * S::kThreads / kWarp);
    }
  wait_for_kernels();
  cluster_barrier();
  if (thread() == 0)
    for (int step = 0; step < S::kStages && step < steps; ++step) load(step);

  float sum[S::kN / 2], total[S::kN / 2];
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) sum[i] = total[i] = 0;
#pragma unroll 1
  for (int step = 0; step < steps;) {
    const int end = step + kSteps < steps ? step + kSteps : steps;  // of a slice
#pragma unroll 1
    for (const int first = step; step < end; ++step) {
      wait_phase(full + step % S::kStages, step / S::kStages);
      __syncwarp();
      const unsigned char* const w = stage(step) + thread() / kWarpgroup * kTileRows * kTileRowBytes;
      const unsigned char* const x = stage(step) + S::kOutputs * kTileRowBytes;
      begin_products();
#pragma unroll
      for (int k = 0; k < kTileColumns / 16; ++k)
        multiply_tiles<T, S::kN>(sum, operand(w + k * 32), operand(x + k * 32), step > first || k > 0);
      commit_products();
      wait_products<1>(sum);
      if (step > first) has_read(step - 1);
      // Where all have read two steps ago, by now without waiting.
      if (const int next = step - 2 + S::kStages; thread() == 0 && step >= 2 && next < steps) {
        wait_phase(read + next % S::kStages, next / S::kStages - 1);
        load(next);
      }
      __syncwarp();
    }
    wait_products<0>(sum);
    has_read(step - 1);
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) total[i] += sum[i];
  }
  cluster_barrier();  // none ends while another may arrive at its barriers
  store_totals<Y, S>(p, place.row, output, total, nullptr);
#endif
}

}  // namespace

std::int64_t wide_time(const MatmulParams& p) {
  const bool takes = p.heads == 1 && p.x_rows == nullptr && p.x.stride % 8 == 0 &&
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
        launch(stream, {blocks_of<Together>(p) * kCluster}, S::kThreads, kBytes, kernel, p, w, x);
      };
      p.y.format == Format::f32 ? run(wgmma_wide_kernel<T, float>) : run(wgmma_wide_kernel<T, T>);
    }
  });
}

}  // namespace octavo::cuda
