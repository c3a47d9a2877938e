// y = x * w^T + bias on Hopper's tensor cores with both operands in fp8, and the same product for experts.
// The order of sums is that of fp8_matmul.cu: the sum of each 128 columns is scaled and added in f32.
//
// A step is 128 columns: one tile of rows of x and one of outputs, with their scales. Tiles pass through the
// ring of buffers of wgmma_ring.h.
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

constexpr int kStepColumns = static_cast<int>(kFp8Columns);
static_assert(kStepColumns == kTileRowBytes);

// Layout of a stage in shared memory: rows of x, rows of the outputs, scales of the outputs, scales of x.
template <class S>
struct Stage {
  static constexpr int kWeightsAt = S::kN * kTileRowBytes;
  static constexpr int kScalesAt = kWeightsAt + S::kOutputs * kTileRowBytes;
  static constexpr int kXScalesAt = kScalesAt + S::kOutputs * static_cast<int>(sizeof(GroupScale));
  static constexpr int kAlign = static_cast<int>(kSwizzleBytes);
  static constexpr int kBytes = (kXScalesAt + S::kN * 4 + kAlign - 1) / kAlign * kAlign;
};

template <class S>
using ByteStages = Stages<S, Stage<S>::kBytes, kStepColumns>;

// Copies both operands and their scales to the stages of a team.
template <class S>
struct ByteRing {
  using At = Stage<S>;
  static constexpr int kChunks = kTileRowBytes / 16;  // number of 16-byte chunks in a row of a tile
  static constexpr int kRowsApart =
      S::kTeamThreads / kChunks;  // distance between the rows that a thread copies

  const MatmulParams& p;
  const ByteStages<S>& stages;
  const std::int64_t row, output;  // first row of x, first output
  const int me;

  __device__ ByteRing(const MatmulParams& product, const ByteStages<S>& of_team, std::int64_t first_row,
                      std::int64_t first_output)
      : p(product), stages(of_team), row(first_row), output(first_output), me(thread() % S::kTeamThreads) {}

  __device__ void begin_weights(std::int64_t step) const {
    if (!stages.valid(step)) return;
    unsigned char* const to = stages.at(step);
    const std::int64_t first = stages.column(step);
    const int chunk = me % kChunks;
#pragma unroll
    for (int r = me / kChunks; r < S::kOutputs; r += kRowsApart) {
      const bool exists = output + r < p.rows;
      copy_async(to + At::kWeightsAt + swizzled(r, chunk),
                 exists ? row_of(p.w, output + r) + p.w.codes_at + first + chunk * 16 : p.w.data, exists);
    }
    const auto group = static_cast<std::int64_t>(first / p.w.group);
    for (int r = me; r < S::kOutputs; r += S::kTeamThreads) {
      const bool exists = output + r < p.rows;
      copy_async<sizeof(GroupScale)>(to + At::kScalesAt + r * static_cast<int>(sizeof(GroupScale)),
                                     row_of(p.w, exists ? output + r : 0) + group * sizeof(GroupScale),
                                     exists);
    }
  }

  __device__ void begin_x(std::int64_t step) const {
    if (!stages.valid(step)) return;
    unsigned char* const to = stages.at(step);
    const std::int64_t first = stages.column(step);
    const int chunk = me % kChunks;
    const auto* const codes = static_cast<const unsigned char*>(p.x.data);
#pragma unroll
    for (int r = me / kChunks; r < S::kN; r += kRowsApart) {
      const bool exists = row + r < p.m;
      copy_async(to + swizzled(r, chunk),
                 codes + element_at(x_index_of(p, row + r), p.x.stride, exists ? first + chunk * 16 : 0),
                 exists);
    }
    for (int r = me; r < S::kN; r += S::kTeamThreads) {
      const float* const scales = p.x_scales.data + element_at(x_index_of(p, row + r), p.x_scales.groups, 0);
      copy_async<4>(to + At::kXScalesAt + r * 4, scales + first / p.x_scales.group, row + r < p.m);
    }
  }
};

// Adds the sums of one step, times their scales, to `sum`.
template <class S>
__device__ inline void multiply_step(const unsigned char* stage, int tall, float (&part)[S::kN / 2],
                                     float (&sum)[S::kN / 2]) {
  using At = Stage<S>;
  begin_products();
#pragma unroll
  for (int k = 0; k < kStepColumns / 32; ++k)
    multiply_tiles<F8, S::kN>(part,
                              operand(stage + At::kWeightsAt + tall * kTileRows * kTileRowBytes + k * 32),
                              operand(stage + k * 32), k > 0);
  commit_products();
  const int r = tall * kTileRows + warp() % 4 * 16 + lane() / 4;  // this output and output r + 8
  const auto* const scales = reinterpret_cast<const GroupScale*>(stage + At::kScalesAt);
  const auto* const x_scales = reinterpret_cast<const float*>(stage + At::kXScalesAt);
  const float above = scales[r].scale, below = scales[r + 8].scale;
  wait_products<0>(part);
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) {
    const float x_scale = x_scales[i / 4 * 8 + lane() % 4 * 2 + i % 2];
    sum[i] = fmaf(x_scale * (i / 2 % 2 == 0 ? above : below), part[i], sum[i]);
  }
}

// Computes the rows [row, row + kN) of x, for outputs from `output` on.
template <class S>
__device__ void fp8_tile(const MatmulParams& p, std::int64_t row, std::int64_t output, const Part& part) {
  constexpr int kAhead = S::kStages - 1;
  unsigned char* memory = memory_of_tiles();
  const int tall = thread() / kWarpgroup % S::kTall;
  float* const together = totals_of(memory);
  const ByteStages<S> stages(memory, part);
  const ByteRing<S> ring(p, stages, row, output);
  float products[S::kN / 2], sum[S::kN / 2], total[S::kN / 2];
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) products[i] = total[i] = 0;

  // Copies of weights start while previous kernels are still running.
  for (int i = 0; i < kAhead; ++i) ring.begin_weights(i);
  wait_for_kernels();
  for (int i = 0; i < kAhead; ++i) {
    ring.begin_x(i);
    commit_copies();
  }

  std::int64_t step = 0;
  add_up_slices<S, kStepColumns>(part, total, together, sum, [&](int steps) {
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) sum[i] = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i, ++step) {
      wait_copies<kAhead - 1>();
      show_to_products();
      named_barrier(1 + S::team(), S::kTeamThreads);
      ring.begin_weights(step + kAhead);  // overwrites the previous step
      ring.begin_x(step + kAhead);
      commit_copies();
      multiply_step<S>(stages.at(step), tall, products, sum);
    }
  });
  if (!has_all_slices<S>(part, total)) return;
  if (p.y.format == Format::f32) return store_totals<float, S>(p, row, output, total, together);
  p.y.format == Format::bf16 ? store_totals<Bf16, S>(p, row, output, total, together)
                             : store_totals<F16, S>(p, row, output, total, together);
}

// Kernel for experts, and for a single product in which a thread block has `slices_each` slices of a tile.
template <int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads,
                                  (ByteStages<Shape<kN, kTall, kTeams, kStages>>::kBlocks))
    wgmma_fp8_kernel(ExpertChunk chunk, int slices_each) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  using S = Shape<kN, kTall, kTeams, kStages>;
  MatmulParams p = chunk.product;
  TileOrigin origin;
  Part part;
  if (find_tile<S>(chunk, slices_each, p, origin, part)) fp8_tile<S>(p, origin.row, origin.output, part);
#endif
}

// Calls body() with kN, kTall, kTeams and kStages for this number of rows of x per thread block. In a single
// product, several thread blocks share a tile; for experts, the teams of one thread block share it.
template <class Body>
void for_shape(std::int64_t m, bool experts, Body&& body) {
  if (m <= 8)
    return experts ? body.template operator()<8, 1, 4, 4>() : body.template operator()<8, 1, 1, 6>();
  if (m <= 32)
    return experts ? body.template operator()<32, 1, 4, 3>() : body.template operator()<32, 1, 1, 5>();
  if (m <= 128) return body.template operator()<64, 2, 1, 6>();
  body.template operator()<128, 2, 1, 5>();
}

}  // namespace

void wgmma_fp8(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  for_shape(rows_each, chunk.experts > 0, [&]<int kN, int kTall, int kTeams, int kStages>() {
    using S = Shape<kN, kTall, kTeams, kStages>;
    launch_tiles<S, ByteStages<S>>(stream, wgmma_fp8_kernel<kN, kTall, kTeams, kStages>, chunk);
  });
}

}  // namespace octavo::cuda
