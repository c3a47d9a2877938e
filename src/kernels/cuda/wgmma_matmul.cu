// y = x * w^T + bias on Hopper's tensor cores, for numbers of 16 bits, and the same for experts.
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

[[maybe_unused]] constexpr int kSteps = static_cast<int>(kSlice / kTileColumns);  // of a slice

template <class S>
constexpr int kStageBytes = (S::kOutputs + S::kN) * kTileRowBytes;

// Tiles of one team on their way to shared memory.
template <class T, class S>
struct Ring {
  static constexpr int kChunks = kTileColumns / 8;  // of a row of a tile
  static constexpr int kWCopies = S::kOutputs * kChunks / S::kTeamThreads;
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;  // of the copies of a thread

  const MatmulParams& p;
  unsigned char* const stages;
  const int team, me;
  const std::int64_t first_slice, end;  // slices from this one on, columns before that one
  const XTiles<T, S, kTileColumns> x;
  const std::byte* w;   // the thread's chunk of its first row
  std::int64_t w_rows;  // from that row on

  __device__ Ring(const MatmulParams& product, const Part& part, unsigned char* memory, std::int64_t row,
                  std::int64_t output)
      : p(product),
        stages(memory),
        team(S::team()),
        me(thread() % S::kTeamThreads),
        first_slice(part.first),
        end(part.end),
        x(product, me, row),
        w(row_of(product.w, output + me / kChunks)),
        w_rows(product.rows - output - me / kChunks) {}

  __device__ unsigned char* stage(std::int64_t step) const { return stages + step % S::kStages * kStageBytes<S>; }

  // Step `step` of those that the team has in all its slices; beyond them nothing.
  __device__ void begin(std::int64_t step) {
    const std::int64_t slice = first_slice + step / kSteps * S::kTeams + team;
    const std::int64_t first = slice * kSlice + step % kSteps * kTileColumns, column = first + me % kChunks * 8;
    if (first < end) {
      unsigned char* tile = stage(step);
      const bool in_w = column * 2 < p.w.stride;
#pragma unroll
      for (int i = 0; i < kWCopies; ++i) {
        const bool there = in_w && i * kRowsApart < w_rows;
        copy_async(tile + swizzled(me / kChunks + i * kRowsApart, me % kChunks),
                   there ? w + element_at(i * kRowsApart, p.w.stride, column * 2) : p.w.data, there);
      }
      x.begin(tile + S::kOutputs * kTileRowBytes, first);
    }
    commit_copies();
  }
};

// Rows [row, row + kN) of x, outputs from `output` on.
template <class T, class Y, class S>
__device__ void wgmma_tile(const MatmulParams& p, std::int64_t row, std::int64_t output, const Part& part) {
  constexpr int kN = S::kN;
  constexpr int kAhead = S::kStages - 2;  // steps that are on their way; the last one's products may still be under way
  unsigned char* memory = memory_of_tiles();
  const int team = S::team(), tall = thread() / kWarpgroup % S::kTall;
  float* const together = totals_of(memory);
  Ring<T, S> ring(p, part, memory + S::kTotalBytes + team * S::kStages * kStageBytes<S>, row, output);
  float sum[kN / 2], total[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) sum[i] = total[i] = 0;

  std::int64_t step = 0;
  for (; step < kAhead; ++step) ring.begin(step);
  step = 0;
#pragma unroll 1
  for (std::int64_t first = part.first; first * kSlice < part.end; first += S::kTeams) {
    const std::int64_t slice = first + team;
    if (slice * kSlice < part.end) {
      const std::int64_t left = part.end - slice * kSlice, columns = left < kSlice ? left : kSlice;
      const int steps = static_cast<int>((columns + kTileColumns - 1) / kTileColumns);
#pragma unroll 1
      for (int i = 0; i < steps; ++i, ++step) {
        wait_copies<kAhead - 1>();
        show_to_products();
        named_barrier(1 + team, S::kTeamThreads);
        const unsigned char* w = ring.stage(step) + tall * kTileRows * kTileRowBytes;
        const unsigned char* x = ring.stage(step) + S::kOutputs * kTileRowBytes;
        begin_products();
#pragma unroll
        for (int k = 0; k < kTileColumns / 16; ++k)
          multiply_tiles<T, kN>(sum, operand(w + k * 32), operand(x + k * 32), i > 0 || k > 0);
        commit_products();
        ring.begin(step + kAhead);  // where the products of two steps ago have read
        wait_products<1>(sum);
      }
      wait_products<0>(sum);
    }
    keep_slice<S>(part, total, together, sum, slice);
  }
  wait_copies<0>();
  if (!has_all_slices<S>(part, total)) return;
  store_totals<Y, S>(p, row, output, total, together);
}

template <class S>
constexpr int kBlocks = S::blocks_on_processor(kStageBytes<S>);
// Blocks of the widest tiles have no registers left for what sharing takes.
template <class S>
constexpr bool kShares = S::kN <= 128;

// A block has `slices_each` slices of a tile, block y of the grid so manieth of them.
template <class T, class Y, int kN, int kTall, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, 1, kStages>::kThreads, (kBlocks<Shape<kN, kTall, 1, kStages>>))
    wgmma_kernel(MatmulParams all, int slices_each) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  using S = Shape<kN, kTall, 1, kStages>;
  const MatmulParams p = of_head<T, Y>(all);
  const TilePlace place = place_of_block<S>(p);
  const Part part = kShares<S> ? part_of_block<S>(p, slices_each) : whole_tile(p);
  wgmma_tile<T, Y, S>(p, place.row, place.output, part);
#endif
}

template <class T, int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads, 1)
    wgmma_expert_kernel(ExpertChunk chunk) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  using S = Shape<kN, kTall, kTeams, kStages>;
  MatmulParams p = chunk.product;
  std::int64_t tile = block_y();
  if (find_expert(chunk, kN, p, tile))
    wgmma_tile<T, T, S>(p, tile * kN, block_x() * S::kOutputs, whole_tile(p));
#endif
}

template <class S>
Schedule schedule_of(const MatmulParams& p) {
  return schedule_of<S>(p, kBlocks<S>, kStageBytes<S> * kSteps, kShares<S>);
}

// Calls body() with kN, kTall and kStages for a product.
template <class Body>
void for_shape(const MatmulParams& p, Body&& body) {
  if (p.m <= 8) return body.template operator()<8, 1, 6>();
  if (p.m <= 16) return body.template operator()<16, 1, 5>();
  if (p.m <= 32) return body.template operator()<32, 1, 6>();
  if (p.m <= 64) return body.template operator()<64, 2, 4>();
  if (p.m > 128 && schedule_of<Shape<192, 2, 1, 5>>(p).time < schedule_of<Shape<128, 2, 1, 6>>(p).time)
    return body.template operator()<192, 2, 5>();
  body.template operator()<128, 2, 6>();
}

// The same with kN, kTall, kTeams and kStages for so many rows of x to an expert.
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
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_shape(p, [&]<int kN, int kTall, int kStages>() {
        using S = Shape<kN, kTall, 1, kStages>;
        constexpr std::size_t kBytes = S::shared_bytes(kStageBytes<S>);
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
        constexpr std::size_t kBytes = S::shared_bytes(kStageBytes<S>);
        const auto kernel = wgmma_expert_kernel<T, kN, kTall, kTeams, kStages>;
        allow_shared(kernel, kBytes);
        launch(stream, {pieces(p.rows, S::kOutputs), pieces(p.m, kN) + static_cast<unsigned>(chunk.experts)},
               S::kThreads, kBytes, kernel, chunk);
      });
  });
}

}  // namespace octavo::cuda
