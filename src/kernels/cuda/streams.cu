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
