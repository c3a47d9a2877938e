// y = x * w^T + bias on Hopper's tensor cores, for 16-bit numbers, and the same product for experts.
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

// A stage contains the tiles of w, then those of x.
template <class S>
using TileStages = Stages<S, (S::kOutputs + S::kN) * kTileRowBytes, static_cast<int>(kTileColumns)>;

// Copies the tiles of w of one team to shared memory.
template <class S>
struct WTiles {
  static constexpr int kChunks = kTileColumns / 8;  // number of 16-byte chunks in a tile row
  static constexpr int kCopies = S::kOutputs * kChunks / S::kTeamThreads;
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;  // distance between the rows that a thread
                                                                // copies

  const MatmulParams& p;
  const int me;
  const std::byte* w;   // address of this thread's chunk in its first row
  std::int64_t w_rows;  // number of rows of w from the first row of the tile on

  __device__ WTiles(const MatmulParams& product, std::int64_t output)
      : p(product),
        me(thread() % S::kTeamThreads),
        w(row_of(product.w, output + me / kChunks)),
        w_rows(product.rows - output - me / kChunks) {}

  // Starts the copy of the tile that begins at column `first`.
  __device__ void begin(unsigned char* tile, std::int64_t first) const {
    const std::int64_t column = first + me % kChunks * 8;
    const bool in_w = column * 2 < p.w.stride;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool valid = in_w && i * kRowsApart < w_rows;
      copy_async(tile + swizzled(me / kChunks + i * kRowsApart, me % kChunks),
                 valid ? w + element_at(i * kRowsApart, p.w.stride, column * 2) : p.w.data, valid);
    }
  }
};

// Computes the rows [row, row + kN) of x, for outputs from `output` on.
template <class T, class Y, class S>
__device__ void wgmma_tile(const MatmulParams& p, std::int64_t row, std::int64_t output, const Part& part) {
  constexpr int kN = S::kN;
  constexpr int kAhead = S::kStages - 2;  // number of steps whose copies are in flight; products of the last
                                          // step may also be running
  unsigned char* memory = memory_of_tiles();
  const int tall = thread() / kWarpgroup % S::kTall;
  float* const together = totals_of(memory);
  const TileStages<S> stages(memory, part);
  const WTiles<S> w_tiles(p, output);
  float sum[kN / 2], total[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) sum[i] = total[i] = 0;

  // Copies of weights start while previous kernels are still running.
  for (int i = 0; i < kAhead; ++i)
    if (stages.valid(i)) w_tiles.begin(stages.at(i), stages.column(i));
  wait_for_kernels();
  const XTiles<T, S, kTileColumns> x_tiles(p, w_tiles.me, row);
  const auto begin_x = [&](std::int64_t i) {
    if (stages.valid(i)) x_tiles.begin(stages.at(i) + S::kOutputs * kTileRowBytes, stages.column(i));
    commit_copies();
  };
  for (int i = 0; i < kAhead; ++i) begin_x(i);

  std::int64_t step = 0;
  add_up_slices<S, kTileColumns>(part, total, together, sum, [&](int steps) {
#pragma unroll 1
    for (int i = 0; i < steps; ++i, ++step) {
      wait_copies<kAhead - 1>();
      show_to_products();
      named_barrier(1 + S::team(), S::kTeamThreads);
      const unsigned char* w = stages.at(step) + tall * kTileRows * kTileRowBytes;
      const unsigned char* x = stages.at(step) + S::kOutputs * kTileRowBytes;
      begin_products();
#pragma unroll
      for (int k = 0; k < kTileColumns / 16; ++k)
        multiply_tiles<T, kN>(sum, operand(w + k * 32), operand(x + k * 32), i > 0 || k > 0);
      commit_products();
      // Overwrites the stage of step - 2, which its products have read.
      const std::int64_t next = step + kAhead;
      if (stages.valid(next)) w_tiles.begin(stages.at(next), stages.column(next));
      begin_x(next);
      wait_products<1>(sum);
    }
    wait_products<0>(sum);
  });
  if (!has_all_slices<S>(part, total)) return;
  store_totals<Y, S>(p, row, output, total, together);
}

// A thread block computes `slices_each` slices of a tile; block y of the grid computes the y-th group of
// slices.
template <class T, class Y, int kN, int kTall, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, 1, kStages>::kThreads,
                                  (TileStages<Shape<kN, kTall, 1, kStages>>::kBlocks))
    wgmma_kernel(MatmulParams all, int slices_each) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  using S = Shape<kN, kTall, 1, kStages>;
  const MatmulParams p = of_head<T, Y>(all);
  const TileOrigin origin = origin_of_tile<S>(p, block_x());
  const Part part = part_of_block<S>(p, slices_each);
  wgmma_tile<T, Y, S>(p, origin.row, origin.output, part);
#endif
}

template <class T, int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads, 1)
    wgmma_expert_kernel(ExpertChunk chunk) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  wait_for_kernels();
  using S = Shape<kN, kTall, kTeams, kStages>;
  MatmulParams p = chunk.product;
  std::int64_t tile = block_y();
  if (find_expert(chunk, kN, p, tile))
    wgmma_tile<T, T, S>(p, tile * kN, block_x() * S::kOutputs, whole_tile(p));
#endif
}

template <class S>
Schedule schedule_of(const MatmulParams& p) {
  return schedule_of<S>(p, TileStages<S>::kBlocks, TileStages<S>::kBytes * TileStages<S>::kSteps, true);
}

// Calls body() with kN, kTall and kStages for a product.
template <class Body>
void for_shape(const MatmulParams& p, Body&& body) {
  if (p.m <= 8) return body.template operator()<8, 1, 6>();
  if (p.m <= 16) return body.template operator()<16, 1, 5>();
  if (p.m <= 32) return body.template operator()<32, 1, 6>();
  if (p.m <= 64) return body.template operator()<64, 2, 4>();
  body.template operator()<128, 2, 6>();
}

// Does the same for experts: calls body() with kN, kTall, kTeams and kStages, for this number of rows of x
// per expert.
template <class Body>
void for_shape_of_expert(std::int64_t m, Body&& body) {
  if (m <= 8) return body.template operator()<8, 1, 4, 5>();
  if (m <= 16) return body.template operator()<16, 1, 4, 5>();
  if (m <= 32) return body.template operator()<32, 1, 4, 4>();
  if (m <= 64) return body.template operator()<64, 1, 2, 6>();
  if (m <= 128) return body.template operator()<128, 1, 2, 4>();
  body.template operator()<128, 2, 1, 6>();
}

}  // namespace

void wgmma_matmul(StreamHandle stream, const MatmulParams& p) {
  if (p.m > 128 && wide_time(p) < schedule_of<Shape<128, 2, 1, 6>>(p).time) return wgmma_wide(stream, p);
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_shape(p, [&]<int kN, int kTall, int kStages>() {
        using S = Shape<kN, kTall, 1, kStages>;
        constexpr std::size_t kBytes = S::shared_bytes(TileStages<S>::kBytes);
        const int slices_each = schedule_of<S>(p).slices_each;
        const auto run = [&](void (*kernel)(MatmulParams, int)) {
          allow_shared(kernel, kBytes);
          launch(stream, grid_of<S>(p, slices_each), S::kThreads, kBytes, kernel, p, slices_each);
        };
        p.y.format == Format::f32 ? run(wgmma_kernel<T, float, kN, kTall, kStages>)
                                  : run(wgmma_kernel<T, T, kN, kTall, kStages>);
      });
  });
}

void wgmma_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  const MatmulParams& p = chunk.product;
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_shape_of_expert(rows_each, [&]<int kN, int kTall, int kTeams, int kStages>() {
        using S = Shape<kN, kTall, kTeams, kStages>;
        constexpr std::size_t kBytes = S::shared_bytes(TileStages<S>::kBytes);
        const auto kernel = wgmma_expert_kernel<T, kN, kTall, kTeams, kStages>;
        allow_shared(kernel, kBytes);
        launch(stream, {pieces(p.rows, S::kOutputs), pieces(p.m, kN) + static_cast<unsigned>(chunk.experts)},
               S::kThreads, kBytes, kernel, chunk);
      });
  });
}

}  // namespace octavo::cuda
