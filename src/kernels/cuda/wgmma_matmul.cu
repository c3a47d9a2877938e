// y = x * w^T + bias on Hopper's tensor cores, for numbers of 16 bits, and the same for experts.
//
// The rows of w, which are the outputs, are the 64 rows of an instruction, rows of x its 8 to 128 columns: one family of
// instructions from one row to thousands. A slice of kSlice columns is one chain of them, and slices are added in their
// order, as in matmul.cu: the bits of an output do not depend on how many rows of x a tile has, nor on who computes a
// slice.
//
// Tiles of both operands come through a ring in shared memory. A team of warpgroups has a ring of its own: with few
// rows of x a block has one tile and its teams share out the slices, with many one team computes two tiles of outputs.
#include "kernels/cuda/matmul_rows.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {
namespace {

constexpr int kSteps = static_cast<int>(kSlice / kTileColumns);  // of a slice
constexpr int kTileRows = 64;                                    // of w

// kN rows of x; kTall tiles of 64 outputs, a warpgroup each; kTeams of so many warpgroups.
template <int kN, int kTall, int kTeams, int kStages>
struct Shape {
  static constexpr int kTeamThreads = kTall * kWarpgroup, kThreads = kTeams * kTeamThreads;
  static constexpr int kOutputs = kTall * kTileRows;
  static constexpr int kStageBytes = (kOutputs + kN) * kTileRowBytes;
  static constexpr int kTotalBytes = kTeams > 1 ? kN * kTileRows * 4 : 0;
  static constexpr std::size_t kSharedBytes = kTotalBytes + kTeams * kStages * kStageBytes + kSwizzleBytes;
  static_assert(kTall == 1 || kTeams == 1);
  static_assert(kSharedBytes <= (227 << 10));
};

// Tiles of one team on their way to shared memory.
template <class T, int kN, int kTall, int kTeams, int kStages>
struct Ring {
  using S = Shape<kN, kTall, kTeams, kStages>;
  static constexpr int kChunks = kTileColumns / 8;  // of a row of a tile
  static constexpr int kWCopies = S::kOutputs * kChunks / S::kTeamThreads;
  static constexpr int kXCopies = (kN * kChunks + S::kTeamThreads - 1) / S::kTeamThreads;
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;  // of the copies of a thread

  const MatmulParams& p;
  unsigned char* const stages;
  const int team, me;
  const bool aligned;
  const std::byte* w;   // the thread's chunk of its first row
  const T* x[kXCopies];  // null: beyond the rows
  std::int64_t w_rows;   // from that row on

  __device__ Ring(const MatmulParams& product, unsigned char* memory, std::int64_t row, std::int64_t output)
      : p(product),
        stages(memory),
        team(thread() / S::kTeamThreads),
        me(thread() % S::kTeamThreads),
        aligned(x_aligned<T>(product)),
        w(row_of(product.w, output + me / kChunks)),
        w_rows(product.rows - output - me / kChunks) {
#pragma unroll
    for (int i = 0; i < kXCopies; ++i) {
      const int r = me / kChunks + i * kRowsApart;
      x[i] = r < kN && row + r < p.m ? x_row_of<T>(p, row + r) : nullptr;
    }
  }

  __device__ unsigned char* stage(std::int64_t step) const { return stages + step % kStages * S::kStageBytes; }

  // Step `step` of those that the team has in all its slices; beyond them nothing.
  __device__ void begin(std::int64_t step) {
    const std::int64_t slice = step / kSteps * kTeams + team;
    const std::int64_t first = slice * kSlice + step % kSteps * kTileColumns, column = first + me % kChunks * 8;
    if (first < p.cols) {
      unsigned char* tile = stage(step);
      const bool in_w = column * 2 < p.w.stride;
#pragma unroll
      for (int i = 0; i < kWCopies; ++i) {
        const bool there = in_w && i * kRowsApart < w_rows;
        copy_async(tile + swizzled(me / kChunks + i * kRowsApart, me % kChunks),
                   there ? w + element_at(i * kRowsApart, p.w.stride, column * 2) : p.w.data, there);
      }
      tile += S::kOutputs * kTileRowBytes;
#pragma unroll
      for (int i = 0; i < kXCopies; ++i) {
        const int r = me / kChunks + i * kRowsApart;
        if (r >= kN) break;
        void* to = tile + swizzled(r, me % kChunks);
        const bool there = x[i] != nullptr && column < p.cols;
        if (aligned) {
          copy_async(to, there ? x[i] + column : p.x.data, there);
        } else {
          *static_cast<uint4*>(to) = there ? load_x(x[i], column, p.cols, false) : uint4{0, 0, 0, 0};
        }
      }
    }
    commit_copies();
  }
};

// Rows [row, row + kN) of x, outputs from `output` on.
template <class T, class Y, int kN, int kTall, int kTeams, int kStages>
__device__ void wgmma_tile(const MatmulParams& p, std::int64_t row, std::int64_t output) {
  using S = Shape<kN, kTall, kTeams, kStages>;
  constexpr int kAhead = kStages - 2;  // steps that are on their way; the last one's products may still be under way
  unsigned char* memory = shared_memory();
#ifdef __CUDACC__
  memory += (kSwizzleBytes - shared_address(memory) % kSwizzleBytes) % kSwizzleBytes;
#endif
  const int team = thread() / S::kTeamThreads, tall = thread() / kWarpgroup % kTall;
  // Of several teams: what their slices add up to, each thread's numbers where the same threads of the others' are.
  auto* const together = reinterpret_cast<float*>(memory) + thread() % kWarpgroup;
  Ring<T, kN, kTall, kTeams, kStages> ring(p, memory + S::kTotalBytes + team * kStages * S::kStageBytes, row, output);
  float sum[kN / 2], total[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) sum[i] = total[i] = 0;

  const std::int64_t slices = (p.cols + kSlice - 1) / kSlice;
  std::int64_t step = 0;
  for (; step < kAhead; ++step) ring.begin(step);
  step = 0;
#pragma unroll 1
  for (std::int64_t first = 0; first < slices; first += kTeams) {
    const std::int64_t slice = first + team;
    if (slice < slices) {
      const std::int64_t columns = p.cols - slice * kSlice < kSlice ? p.cols - slice * kSlice : kSlice;
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
    if constexpr (kTeams == 1) {
#pragma unroll
      for (int i = 0; i < kN / 2; ++i) total[i] += sum[i];
    } else {
      for (int turn = 0; turn < kTeams; ++turn) {
        if (turn == team && slice < slices)
#pragma unroll
          for (int i = 0; i < kN / 2; ++i)
            together[i * kWarpgroup] = (slice > 0 ? together[i * kWarpgroup] : 0) + sum[i];
        __syncthreads();
      }
    }
  }
  wait_copies<0>();

  const std::int64_t first = output + tall * kTileRows + warp() % 4 * 16 + lane() / 4;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    if (kTeams > 1 && i / 4 % kTeams != team) continue;
    store<Y>(p, row + i / 4 * 8 + lane() % 4 * 2 + i % 2, first + i / 2 % 2 * 8,
             kTeams > 1 ? together[i * kWarpgroup] : total[i]);
  }
}

// Blocks that run side by side have few tiles of either operand: kGrouped tiles of x at a time.
constexpr std::int64_t kGrouped = 8;

template <class T, class Y, int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads, 1) wgmma_kernel(MatmulParams all) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  constexpr int kOutputs = Shape<kN, kTall, kTeams, kStages>::kOutputs;
  const MatmulParams p = of_head<T, Y>(all);
  const std::int64_t across = (p.rows + kOutputs - 1) / kOutputs, down = (p.m + kN - 1) / kN;
  const std::int64_t group = block_x() / (kGrouped * across) * kGrouped, place = block_x() % (kGrouped * across);
  const std::int64_t height = down - group < kGrouped ? down - group : kGrouped;
  wgmma_tile<T, Y, kN, kTall, kTeams, kStages>(p, (group + place % height) * kN, place / height * kOutputs);
#endif
}

template <class T, int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads, 1)
    wgmma_expert_kernel(ExpertChunk chunk) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  MatmulParams p = chunk.product;
  std::int64_t tile = block_y();
  if (find_expert(chunk, kN, p, tile))
    wgmma_tile<T, T, kN, kTall, kTeams, kStages>(p, tile * kN, block_x() * Shape<kN, kTall, kTeams, kStages>::kOutputs);
#endif
}

// Calls body() with kN, kTall, kTeams and kStages for so many rows of x.
template <class Body>
void for_shape(std::int64_t m, Body&& body) {
  if (m <= 8) return body.template operator()<8, 1, 4, 5>();
  if (m <= 16) return body.template operator()<16, 1, 4, 5>();
  if (m <= 32) return body.template operator()<32, 1, 4, 4>();
  if (m <= 64) return body.template operator()<64, 1, 4, 3>();
  if (m <= 128) return body.template operator()<128, 1, 2, 4>();
  body.template operator()<128, 2, 1, 6>();
}

}  // namespace

void wgmma_matmul(StreamHandle stream, const MatmulParams& p) {
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_shape(p.m, [&]<int kN, int kTall, int kTeams, int kStages>() {
        using S = Shape<kN, kTall, kTeams, kStages>;
        const auto run = [&](void (*kernel)(MatmulParams)) {
          allow_shared(kernel, S::kSharedBytes);
          launch(stream, {pieces(p.rows, S::kOutputs) * pieces(p.m, kN), 1, static_cast<unsigned>(p.heads)},
                 S::kThreads, S::kSharedBytes, kernel, p);
        };
        p.y.format == Format::f32 ? run(wgmma_kernel<T, float, kN, kTall, kTeams, kStages>)
                                  : run(wgmma_kernel<T, T, kN, kTall, kTeams, kStages>);
      });
  });
}

void wgmma_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  const MatmulParams& p = chunk.product;
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_shape(rows_each, [&]<int kN, int kTall, int kTeams, int kStages>() {
        using S = Shape<kN, kTall, kTeams, kStages>;
        const auto kernel = wgmma_expert_kernel<T, kN, kTall, kTeams, kStages>;
        allow_shared(kernel, S::kSharedBytes);
        launch(stream, {pieces(p.rows, S::kOutputs), pieces(p.m, kN) + static_cast<unsigned>(chunk.experts)},
               S::kThreads, S::kSharedBytes, kernel, chunk);
      });
  });
}

}  // namespace octavo::cuda
