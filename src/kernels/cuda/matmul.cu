// y = x * w^T + bias, on tensor cores for 16-bit numbers.
//
// A sum is divided into slices of kSlice columns, at fixed positions. A slice is one chain of tensor-core
// steps, and slices are added in order. So an output has the same bits for any number of rows of x, any
// kernel and any warp. Lanes read both operands directly from global memory, 16 bytes at a time: four lanes
// share a row, and lane t of the four (t = 0..3) reads the columns 8t to 8t + 7 of each 32 columns. This is
// not the order of tensor-core fragments, but it is the same for both operands. Codes of weights are
// converted to the format of x after they are read.
#include "kernels/cuda/mma.h"
#include "kernels/cuda/warp_tiles.h"

namespace octavo::cuda {
namespace {

constexpr std::int64_t kStep = 32;  // number of columns that a warp reads at a time: two tensor-core steps

template <class T, Format kFormat, int kTall, int kWide>
struct Tile : WarpTile<kTall, kWide> {
  const bool aligned;
  const T* x[kTall][2];
  const std::byte* w[kWide];

  __device__ Tile(const MatmulParams& p, std::int64_t row, std::int64_t column) : aligned(x_aligned<T>(p)) {
    const int g = lane() / 4;
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
      x[i][0] = x_row_of<T>(p, row + i * 16 + g);
      x[i][1] = x_row_of<T>(p, row + i * 16 + g + 8);
    }
#pragma unroll
    for (int j = 0; j < kWide; ++j) w[j] = w_row_of(p, column + j * 8 + g);
  }

  __device__ void multiply(const MatmulParams& p, std::int64_t slice) {
    this->clear();
    const std::int64_t end = (slice + 1) * kSlice < p.cols ? (slice + 1) * kSlice : p.cols;
#pragma unroll(kTall == 1 ? 4 : 2)
    for (std::int64_t k = slice * kSlice + lane() % 4 * 8; k - lane() % 4 * 8 < end; k += kStep) {
      uint4 a[kTall][2], b[kWide];
#pragma unroll
      for (int j = 0; j < kWide; ++j) b[j] = load_weights<T, kFormat>(p.w, w[j], k);
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        a[i][0] = load_x(x[i][0], k, p.cols, aligned);
        a[i][1] = load_x(x[i][1], k, p.cols, aligned);
      }
#pragma unroll
      for (int i = 0; i < kTall; ++i)
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
          multiply_add<T>(this->sum[i][j], {a[i][0].x, a[i][1].x, a[i][0].y, a[i][1].y}, {b[j].x, b[j].y});
          multiply_add<T>(this->sum[i][j], {a[i][0].z, a[i][1].z, a[i][0].w, a[i][1].w}, {b[j].z, b[j].w});
        }
    }
  }
};

template <class T, class Y, Format kFormat>
__global__ void __launch_bounds__(kNarrowWarps* kWarp) narrow_kernel(MatmulParams all) {
  wait_for_kernels();
  const MatmulParams p = of_head<T, Y>(all);
  narrow_tile<Tile<T, kFormat, 1, 1>, Y>(p, block_y() * 16, block_x() * 8);
}

template <class T, class Y, Format kFormat>
__global__ void __launch_bounds__(kWideWarps* kWarp) wide_kernel(MatmulParams all) {
  wait_for_kernels();
  wide_tile<Tile<T, kFormat, kWarpSide / 16, kWarpSide / 8>, Y>(of_head<T, Y>(all));
}

// For f32 models: each thread computes one output, adding columns in order.
constexpr int kPlainThreads = 128;

__device__ inline void plain_output(const MatmulParams& p, std::int64_t row, std::int64_t column) {
  const float* x = x_row_of<float>(p, row);
  float sum = 0;
  for (std::int64_t k = 0; k < p.cols; ++k) sum = fmaf(x[k], weight_at(p.w, column, k), sum);
  store<float>(p, row, column, sum);
}

__global__ void plain_kernel(MatmulParams all) {
  wait_for_kernels();
  const MatmulParams p = of_head<float, float>(all);
  const std::int64_t row = block_y(), column = block_x() * kPlainThreads + thread();
  if (column >= p.rows) return;
  plain_output(p, row, column);
}

template <class T, Format kFormat>
__global__ void __launch_bounds__(kNarrowWarps* kWarp) expert_kernel(ExpertChunk chunk) {
  wait_for_kernels();
  MatmulParams p = chunk.product;
  std::int64_t tile = block_y();
  if (find_expert(chunk, 16, p, tile)) narrow_tile<Tile<T, kFormat, 1, 1>, T>(p, tile * 16, block_x() * 8);
}

__global__ void plain_expert_kernel(ExpertChunk chunk) {
  wait_for_kernels();
  MatmulParams p = chunk.product;
  std::int64_t row = block_y();
  const std::int64_t column = block_x() * kPlainThreads + thread();
  if (find_expert(chunk, 1, p, row) && column < p.rows) plain_output(p, row, column);
}

bool by_wgmma(const MatmulParams& p) {
  return p.hopper.processors > 0 && p.x.format != Format::f32 && (p.w.by_lanes || p.w.format == p.x.format);
}

// Calls body(x, format); the types of the arguments are the 16-bit type of x and the format of the weights.
template <class Body>
void for_operands(const MatmulParams& p, Body&& body) {
  for_activation(p.x.format, [&](auto x) {
    if constexpr (sizeof x == 2) {
      if (p.w.format == Format::q4) return body(x, std::integral_constant<Format, Format::q4>());
      if (p.w.format == Format::e2m1) return body(x, std::integral_constant<Format, Format::e2m1>());
      if (p.w.format == Format::q8) return body(x, std::integral_constant<Format, Format::q8>());
      if (p.w.format == Format::f8) return body(x, std::integral_constant<Format, Format::f8>());
      body(x, std::integral_constant<Format, Format::bf16>());
    }
  });
}

template <class T, class Y, Format kFormat>
void multiply(StreamHandle stream, const MatmulParams& p) {
  const auto heads = static_cast<unsigned>(p.heads);
  if (p.m <= 16) {
    launch(stream, {pieces(p.rows, 8), 1, heads}, kNarrowWarps * kWarp, 0, narrow_kernel<T, Y, kFormat>, p);
  } else {
    launch(stream, {pieces(p.rows, kWideColumns), pieces(p.m, kWideRows), heads}, kWideWarps * kWarp, 0,
           wide_kernel<T, Y, kFormat>, p);
  }
}

}  // namespace

void matmul(StreamHandle stream, const MatmulParams& p) {
  if (p.m == 0) return;
  if (p.x.format == Format::f8) return fp8_matmul(stream, p);
  if (by_wgmma(p)) return p.w.by_lanes ? wgmma_codes(stream, p) : wgmma_matmul(stream, p);
  if (p.x.format == Format::f32) {
    // The grid's second dimension is limited to 65,535.
    constexpr std::int64_t kMost = 32768;
    for (std::int64_t first = 0; first < p.m; first += kMost) {
      MatmulParams part = p;
      part.m = p.m - first < kMost ? p.m - first : kMost;
      part.x.data = static_cast<float*>(p.x.data) + element_at(first, p.x.stride, 0);
      part.y.data = static_cast<float*>(p.y.data) + element_at(first, p.y.stride, 0);
      launch(stream,
             {pieces(p.rows, kPlainThreads), static_cast<unsigned>(part.m), static_cast<unsigned>(p.heads)},
             kPlainThreads, 0, plain_kernel, part);
    }
    return;
  }
  for_operands(p, [&](auto x, auto format) {
    using T = decltype(x);
    constexpr Format kFormat = decltype(format)::value;
    if (p.y.format == Format::f32) return multiply<T, float, kFormat>(stream, p);
    multiply<T, T, kFormat>(stream, p);
  });
}

void grouped_matmul(StreamHandle stream, const GroupedMatmulParams& p) {
  const MatmulParams& product = p.product;
  if (product.m == 0) return;
  for (std::int64_t first = 0; first < p.experts; first += kExpertsAtOnce) {
    ExpertChunk chunk{product, p.starts + first, kExpertsAtOnce, {}};
    if (p.experts - first < kExpertsAtOnce) chunk.experts = static_cast<int>(p.experts - first);
    if (product.bias != nullptr) chunk.product.bias += element_at(first, product.rows, 0);
    for (int e = 0; e < chunk.experts; ++e) chunk.w[e] = p.w[first + e];
    const std::int64_t rows_each = (product.m + p.experts - 1) / p.experts;
    if (product.x.format == Format::f8) {
      fp8_experts(stream, chunk, rows_each);
      continue;
    }
    if (by_wgmma(product)) {
      product.w.by_lanes ? wgmma_code_experts(stream, chunk, rows_each) : wgmma_experts(stream, chunk, rows_each);
      continue;
    }
    if (product.x.format == Format::f32) {
      const dim3 grid(pieces(product.rows, kPlainThreads), static_cast<unsigned>(product.m));
      launch(stream, grid, kPlainThreads, 0, plain_expert_kernel, chunk);
      continue;
    }
    const dim3 grid(pieces(product.rows, 8), pieces(product.m, 16) + static_cast<unsigned>(chunk.experts));
    for_operands(product, [&](auto x, auto format) {
      launch(stream, grid, kNarrowWarps * kWarp, 0, expert_kernel<decltype(x), decltype(format)::value>, chunk);
    });
  }
}

}  // namespace octavo::cuda
