// y = x * w^T + bias with both operands in fp8 (e4m3): the rounding of x, and products with mma.sync. On
// Hopper, wgmma_fp8.cu multiplies.
//
// The sums of fp8 products in tensor cores have few bits. So the sum of 128 columns is multiplied by the
// scales of both operands and added to a sum in f32, as in DeepGEMM (2025). Slices are as in matmul.cu. Lanes
// read both operands directly from global memory, 16 bytes at a time, in the same order of columns.
#include "kernels/cuda/mma.h"
#include "kernels/cuda/warp_tiles.h"

namespace octavo::cuda {
namespace {

constexpr int kStep = static_cast<int>(kFp8Columns);  // number of columns whose sum is promoted to f32

// One group of x: the thread block computes it if it is a whole row, otherwise one warp.
constexpr int kRoundWarps = 8, kRoundThreads = kRoundWarps * kWarp;

template <class T>
__global__ void __launch_bounds__(kRoundThreads) round_kernel(RoundParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x(), groups = p.rounding.groups(p.cols);
  const T* const x = static_cast<const T*>(p.x.data) + element_at(row, p.x.stride, 0);
  const bool whole = groups == 1;
  const int me = whole ? thread() : lane(), all = whole ? kRoundThreads : kWarp;
  for (std::int64_t g = whole ? 0 : warp(); g < groups; g += whole ? 1 : kRoundWarps) {
    const std::int64_t first = g * p.rounding.group, end = g + 1 < groups ? first + p.rounding.group : p.cols;
    float scale = p.rounding.scale;
    if (scale == 0) {
      float largest = 0;
      for (std::int64_t k = first + me; k < end; k += all) largest = fmaxf(largest, fabsf(to_float(x[k])));
      largest = whole ? block_max(largest, partials) : warp_max(largest);
      scale = fp8_scale(largest);
    }
    // The last group includes the padding columns.
    const std::int64_t written = g + 1 < groups ? end : p.codes_stride;
    for (std::int64_t k = first + me * 4; k < written; k += all * 4) {
      std::uint32_t four = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (k + i < end)
          four |= static_cast<std::uint32_t>(from_float<F8>(to_float(x[k + i]) / scale).bits) << (8 * i);
      *reinterpret_cast<std::uint32_t*>(p.codes + element_at(row, p.codes_stride, k)) = four;
    }
    if (me == 0) p.scales[element_at(row, groups, g)] = scale;
  }
}

template <int kTall, int kWide>
struct Fp8Tile : WarpTile<kTall, kWide> {
  const std::byte* x[kTall][2];
  const float* x_scales[kTall][2];
  const std::byte* w[kWide];
  const std::byte* w_scales[kWide][2];  // of the outputs whose sums are in this lane

  __device__ Fp8Tile(const MatmulParams& p, std::int64_t row, std::int64_t column) {
    const int g = lane() / 4, t = lane() % 4;
#pragma unroll
    for (int i = 0; i < kTall; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t index = x_index_of(p, row + i * 16 + half * 8 + g);
        x[i][half] = static_cast<const std::byte*>(p.x.data) + element_at(index, p.x.stride, 16 * t);
        x_scales[i][half] = p.x_scales.data + element_at(index, p.x_scales.groups, 0);
      }
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      w[j] = w_row_of(p, column + j * 8 + g) + p.w.codes_at + 16 * t;
      w_scales[j][0] = w_row_of(p, column + j * 8 + 2 * t);
      w_scales[j][1] = w_row_of(p, column + j * 8 + 2 * t + 1);
    }
  }

  __device__ void multiply(const MatmulParams& p, std::int64_t slice) {
    this->clear();
    const std::int64_t end = (slice + 1) * kSlice < p.cols ? (slice + 1) * kSlice : p.cols;
#pragma unroll 1
    for (std::int64_t k = slice * kSlice; k < end; k += kStep) {
      float part[kTall][kWide][4] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half) multiply_columns(k + half * (kStep / 2), part);
      const std::int64_t x_group = k / p.x_scales.group;
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        const float above = x_scales[i][0][x_group], below = x_scales[i][1][x_group];
#pragma unroll
        for (int j = 0; j < kWide; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float scale = group_of(p.w, w_scales[j][e % 2], k).scale;
            this->sum[i][j][e] =
                fmaf((e / 2 == 0 ? above : below) * scale, part[i][j][e], this->sum[i][j][e]);
          }
      }
    }
  }

 private:
  // Adds the products of 64 columns to `part`.
  __device__ void multiply_columns(std::int64_t k, float (&part)[kTall][kWide][4]) const {
    const auto read = [k](const std::byte* row) { return *reinterpret_cast<const uint4*>(row + k); };
    uint4 a[kTall][2], b[kWide];
#pragma unroll
    for (int j = 0; j < kWide; ++j) b[j] = read(w[j]);
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
      a[i][0] = read(x[i][0]);
      a[i][1] = read(x[i][1]);
    }
#pragma unroll
    for (int i = 0; i < kTall; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        multiply_add_e4m3(part[i][j], {a[i][0].x, a[i][1].x, a[i][0].y, a[i][1].y}, {b[j].x, b[j].y});
        multiply_add_e4m3(part[i][j], {a[i][0].z, a[i][1].z, a[i][0].w, a[i][1].w}, {b[j].z, b[j].w});
      }
  }
};

template <class Y>
__global__ void __launch_bounds__(kNarrowWarps* kWarp) narrow_fp8_kernel(MatmulParams p) {
  wait_for_kernels();
  narrow_tile<Fp8Tile<1, 1>, Y>(p, block_y() * 16, block_x() * 8);
}

template <class Y>
__global__ void __launch_bounds__(kWideWarps* kWarp) wide_fp8_kernel(MatmulParams p) {
  wait_for_kernels();
  wide_tile<Fp8Tile<kWarpSide / 16, kWarpSide / 8>, Y>(p);
}

template <class Y>
__global__ void __launch_bounds__(kNarrowWarps* kWarp) fp8_expert_kernel(ExpertChunk chunk) {
  wait_for_kernels();
  MatmulParams p = chunk.product;
  std::int64_t tile = block_y();
  if (find_expert(chunk, 16, p, tile)) narrow_tile<Fp8Tile<1, 1>, Y>(p, tile * 16, block_x() * 8);
}

}  // namespace

void round_rows(StreamHandle stream, const RoundParams& p) {
  for_activation(p.x.format, [&]<class T>(T) {
    launch(stream, {static_cast<unsigned>(p.rows)}, kRoundThreads, 0, round_kernel<T>, p);
  });
}

void fp8_matmul(StreamHandle stream, const MatmulParams& p) {
  if (p.hopper.processors > 0) return wgmma_fp8(stream, {p, nullptr, 0, {}}, p.m);
  for_activation(p.y.format, [&]<class Y>(Y) {
    if (p.m <= 16) {
      launch(stream, {pieces(p.rows, 8)}, kNarrowWarps * kWarp, 0, narrow_fp8_kernel<Y>, p);
    } else {
      launch(stream, {pieces(p.rows, kWideColumns), pieces(p.m, kWideRows)}, kWideWarps * kWarp, 0,
             wide_fp8_kernel<Y>, p);
    }
  });
}

void fp8_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  const MatmulParams& p = chunk.product;
  if (p.hopper.processors > 0) return wgmma_fp8(stream, chunk, rows_each);
  const dim3 grid(pieces(p.rows, 8), pieces(p.m, 16) + static_cast<unsigned>(chunk.experts));
  for_activation(p.y.format, [&]<class Y>(Y) {
    launch(stream, grid, kNarrowWarps * kWarp, 0, fp8_expert_kernel<Y>, chunk);
  });
}

}  // namespace octavo::cuda
