// Operators on residual streams.
#include "kernels/cuda/gpu.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = 256, kMostStreams = 8;

template <class T>
__device__ T& element(const Rows& rows, std::int64_t row, std::int64_t column) {
  return static_cast<T*>(rows.data)[element_at(row, rows.stride, column)];
}

// Returns the product of row `row` of coefs with the tanh of token t's router values.
__device__ float coefficient(const StreamsParams& p, std::int64_t row, std::int64_t t) {
  float sum = 0;
  for (std::int64_t i = 0; i < p.streams; ++i)
    sum = fmaf(element<float>(p.coefs, row, i), tanhf(element<float>(p.router, t, i)), sum);
  return sum;
}

__device__ float& stream_at(const StreamsParams& p, std::int64_t t, std::int64_t j, std::int64_t k) {
  return p.x[element_at(t, p.token_stride, element_at(j, p.stream_stride, k))];
}

// A thread processes one column of a token.
__global__ void __launch_bounds__(kThreads) predict_kernel(StreamsParams p) {
  wait_for_kernels();
  const std::int64_t t = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.dim) return;
  float sums[kMostStreams];
  for (std::int64_t j = 0; j < p.streams; ++j) {
    sums[j] = stream_at(p, t, j, k);
    for (std::int64_t i = 0; i < p.streams; ++i)
      sums[j] = fmaf(stream_at(p, t, i, k), coefficient(p, j * p.streams + i, t), sums[j]);
  }
  for (std::int64_t j = 0; j < p.streams; ++j) stream_at(p, t, j, k) = sums[j];
}

template <class T>
__global__ void __launch_bounds__(kThreads) correct_kernel(CorrectStreamsParams p) {
  wait_for_kernels();
  const std::int64_t t = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.streams.dim) return;
  const float before = element<float>(p.before, t, k), change = stream_at(p.streams, t, 0, k) - before;
  stream_at(p.streams, t, 0, k) = before;
  for (std::int64_t j = 0; j < p.streams.streams; ++j) {
    float& x = stream_at(p.streams, t, j, k);
    x = fmaf(change, 1 + coefficient(p.streams, j, t), x);
  }
  const float scale = p.scale != nullptr ? p.scale[k] : 1;
  element<T>(p.out, t, k) = from_float<T>(stream_at(p.streams, t, 0, k) * scale);
}

// A thread block processes one row.
__global__ void __launch_bounds__(kThreads) match_kernel(MatchSizeParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x();
  const auto mean_square = [&](const Rows& x) {
    float sum = 0;
    for (std::int64_t k = thread(); k < p.dim; k += kThreads)
      sum = fmaf(element<float>(x, row, k), element<float>(x, row, k), sum);
    return block_sum(sum, partials) / static_cast<float>(p.dim);
  };
  const float wanted = sqrtf(mean_square(p.like)), own = sqrtf(fmaxf(mean_square(p.x), 1e-5f));
  for (std::int64_t k = thread(); k < p.dim; k += kThreads) element<float>(p.x, row, k) *= wanted / own;
}

dim3 grid_of(std::int64_t n, std::int64_t dim) {
  return dim3(static_cast<unsigned>(n), static_cast<unsigned>((dim + kThreads - 1) / kThreads));
}

}  // namespace

void predict_streams(StreamHandle stream, const StreamsParams& p) {
  launch(stream, grid_of(p.n, p.dim), kThreads, 0, predict_kernel, p);
}

void correct_streams(StreamHandle stream, const CorrectStreamsParams& p) {
  for_activation(p.out.format, [&](auto t) {
    launch(stream, grid_of(p.streams.n, p.streams.dim), kThreads, 0, correct_kernel<decltype(t)>, p);
  });
}

void match_size(StreamHandle stream, const MatchSizeParams& p) {
  launch(stream, dim3(static_cast<unsigned>(p.n)), kThreads, 0, match_kernel, p);
}

}  // namespace octavo::cuda
