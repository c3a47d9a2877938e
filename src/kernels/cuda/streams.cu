// Operators on residual streams.
#include "kernels/cuda/views.h"
#include "kernels/operators/streams.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = kColumnThreads;

// Returns the product of row `row` of coefs with the tanh of token t's router values.
__device__ float coefficient(const View& coefs, const View& router, std::int64_t row, std::int64_t t) {
  float sum = 0;
  for (std::int64_t i = 0; i < router.size(1); ++i)
    sum = fmaf(element<float>(coefs, row, i), tanhf(element<float>(router, t, i)), sum);
  return sum;
}

// x: [n, streams, dim].
__device__ float& stream_at(const View& x, std::int64_t t, std::int64_t j, std::int64_t k) {
  return element<float>(x, t, element_at(j, x.stride[1], k));
}

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Divides each row or each column of a matrix [streams, streams] in shared memory by its sum plus eps. Lane i
// of the first warp processes row or column i.
__device__ void divide_by_sums(float* matrix, int streams, bool columns, float eps) {
  if (lane() < streams) {
    const int first = columns ? lane() : lane() * streams, step = columns ? streams : 1;
    float sum = eps;
    for (int i = 0; i < streams; ++i) sum += matrix[first + i * step];
    for (int i = 0; i < streams; ++i) matrix[first + i * step] /= sum;
  }
  __syncwarp();
}

// Makes the matrix of CollapseStreamsArgs from its weights. The first warp calls it.
__device__ void make_mix(float* matrix, int streams, float eps, int iterations) {
  if (lane() < streams) {
    float* const row = matrix + lane() * streams;
    float most = row[0], sum = 0;
    for (int i = 1; i < streams; ++i) most = fmaxf(most, row[i]);
    for (int i = 0; i < streams; ++i) sum += row[i] = expf(row[i] - most);
    for (int i = 0; i < streams; ++i) row[i] = row[i] / sum + eps;
  }
  __syncwarp();
  divide_by_sums(matrix, streams, true, eps);
  for (int i = 1; i < iterations; ++i) {
    divide_by_sums(matrix, streams, false, eps);
    divide_by_sums(matrix, streams, true, eps);
  }
}

// A thread block processes one token; each warp computes some of the products.
__global__ void __launch_bounds__(kThreads) collapse_kernel(CollapseStreamsArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, weights, [kMaxStreams * (2 + kMaxStreams)]);
  const std::int64_t t = block_x(), dim = p.x.size(2);
  const int streams = static_cast<int>(p.x.size(1));
  float squares = 0;
  for (int j = 0; j < streams; ++j)
    for (std::int64_t k = thread(); k < dim; k += kThreads)
      squares = fmaf(stream_at(p.x, t, j, k), stream_at(p.x, t, j, k), squares);
  squares = block_sum(squares, partials);
  const float inverse = 1 / sqrtf(squares / static_cast<float>(streams * dim) + p.norm_eps);
  for (int row = warp(); row < p.matrix.size(0); row += kThreads / kWarp) {
    float sum = 0;
    for (int j = 0; j < streams; ++j)
      for (std::int64_t k = lane(); k < dim; k += kWarp)
        sum = fmaf(stream_at(p.x, t, j, k), element<float>(p.matrix, row, j * dim + k), sum);
    sum = warp_sum(sum);
    const int kind = row < streams ? 0 : row < 2 * streams ? 1 : 2;
    if (lane() == 0)
      weights[row] = fmaf(sum * inverse, items<float>(p.scale)[kind], items<float>(p.base)[row]);
  }
  __syncthreads();
  for (std::int64_t k = thread(); k < dim; k += kThreads) {
    float sum = 0;
    for (int j = 0; j < streams; ++j) sum = fmaf(sigmoid(weights[j]) + p.eps, stream_at(p.x, t, j, k), sum);
    element<float>(p.out, t, k) = sum;
  }
  if (!p.post || warp() > 0) return;
  if (lane() < streams)
    element<float>(p.post, t, lane()) = fmaf(p.post_scale, sigmoid(weights[streams + lane()]), p.post_eps);
  if (!p.mix) return;
  float* const matrix = weights + 2 * streams;
  make_mix(matrix, streams, p.eps, p.iterations);
  for (int i = lane(); i < streams * streams; i += kWarp) element<float>(p.mix, t, i) = matrix[i];
}

// A thread processes one column of a token.
template <class T>
__global__ void __launch_bounds__(kThreads) expand_kernel(ExpandStreamsArgs p) {
  wait_for_kernels();
  const std::int64_t t = block_x(), k = column_of_thread(), streams = p.x.size(1);
  if (k >= p.x.size(2)) return;
  float sums[kMaxStreams];
  for (std::int64_t i = 0; i < streams; ++i) {
    sums[i] = element<float>(p.post, t, i) * to_float(element<T>(p.delta, t, k));
    if (!p.mix) sums[i] += stream_at(p.x, t, i, k);
    for (std::int64_t j = 0; p.mix && j < streams; ++j)
      sums[i] = fmaf(element<float>(p.mix, t, j * streams + i), stream_at(p.x, t, j, k), sums[i]);
  }
  for (std::int64_t i = 0; i < streams; ++i) stream_at(p.x, t, i, k) = sums[i];
}

// A thread processes one column of a token.
__global__ void __launch_bounds__(kThreads) predict_kernel(PredictStreamsArgs p) {
  wait_for_kernels();
  const std::int64_t t = block_x(), k = column_of_thread(), streams = p.x.size(1);
  if (k >= p.x.size(2)) return;
  float sums[kMaxStreams];
  for (std::int64_t j = 0; j < streams; ++j) {
    sums[j] = stream_at(p.x, t, j, k);
    for (std::int64_t i = 0; i < streams; ++i)
      sums[j] = fmaf(stream_at(p.x, t, i, k), coefficient(p.coefs, p.router, j * streams + i, t), sums[j]);
  }
  for (std::int64_t j = 0; j < streams; ++j) stream_at(p.x, t, j, k) = sums[j];
}

template <class T>
__global__ void __launch_bounds__(kThreads) correct_kernel(CorrectStreamsArgs p) {
  wait_for_kernels();
  const std::int64_t t = block_x(), k = column_of_thread();
  if (k >= p.x.size(2)) return;
  const float before = element<float>(p.before, t, k), change = stream_at(p.x, t, 0, k) - before;
  stream_at(p.x, t, 0, k) = before;
  for (std::int64_t j = 0; j < p.x.size(1); ++j) {
    float& x = stream_at(p.x, t, j, k);
    x = fmaf(change, 1 + coefficient(p.coefs, p.router, j, t), x);
  }
  const float scale = p.scale ? items<float>(p.scale)[k] : 1;
  element<T>(p.out, t, k) = from_float<T>(stream_at(p.x, t, 0, k) * scale);
}

// A thread block processes one row.
__global__ void __launch_bounds__(kThreads) match_kernel(MatchSizeArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x(), dim = p.x.size(1);
  const auto mean_square = [&](const View& x) {
    float sum = 0;
    for (std::int64_t k = thread(); k < dim; k += kThreads)
      sum = fmaf(element<float>(x, row, k), element<float>(x, row, k), sum);
    return block_sum(sum, partials) / static_cast<float>(dim);
  };
  const float wanted = sqrtf(mean_square(p.like)), own = sqrtf(fmaxf(mean_square(p.x), 1e-5f));
  for (std::int64_t k = thread(); k < dim; k += kThreads) element<float>(p.x, row, k) *= wanted / own;
}

}  // namespace

void run_collapse_streams(Stream& stream, const CollapseStreamsArgs& args) {
  launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, collapse_kernel, args);
}

void run_expand_streams(Stream& stream, const ExpandStreamsArgs& args) {
  for_activation(args.delta.dtype, [&](auto t) {
    launch(handle_of(stream), column_grid(args.x.size(0), args.x.size(2)), kThreads, 0,
           expand_kernel<decltype(t)>, args);
  });
}

void run_predict_streams(Stream& stream, const PredictStreamsArgs& args) {
  launch(handle_of(stream), column_grid(args.x.size(0), args.x.size(2)), kThreads, 0, predict_kernel, args);
}

void run_correct_streams(Stream& stream, const CorrectStreamsArgs& args) {
  for_activation(args.out.dtype, [&](auto t) {
    launch(handle_of(stream), column_grid(args.x.size(0), args.x.size(2)), kThreads, 0,
           correct_kernel<decltype(t)>, args);
  });
}

void run_match_size(Stream& stream, const MatchSizeArgs& args) {
  launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, match_kernel, args);
}

}  // namespace octavo::cuda
