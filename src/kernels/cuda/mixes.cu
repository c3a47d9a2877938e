// Operators that mix rows with weights which depend on the rows.
#include "kernels/cuda/views.h"
#include "kernels/operators/mixes.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = kColumnThreads, kHeadThreads = 128;

// A thread block processes one token.
__global__ void __launch_bounds__(kThreads) mix_sources_kernel(MixSourcesArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, scores, [kMaxSources]);
  const std::int64_t t = block_x(), count = p.x.size(1), dim = p.x.size(2), all = count + (p.last ? 1 : 0);
  const auto row_of = [&](std::int64_t i) {
    return i < count ? &element<float>(p.x, t, element_at(i, p.x.stride[1], 0))
                     : &element<float>(p.last, t, 0);
  };
  for (std::int64_t i = 0; i < all; ++i) {
    const float* row = row_of(i);
    float squares = 0, product = 0;
    for (std::int64_t k = thread(); k < dim; k += kThreads) {
      squares = fmaf(row[k], row[k], squares);
      product = fmaf(row[k], items<float>(p.query)[k], product);
    }
    squares = block_sum(squares, partials);
    product = block_sum(product, partials);
    if (thread() == 0) scores[i] = product / sqrtf(squares / static_cast<float>(dim) + p.eps);
  }
  __syncthreads();
  float most = -INFINITY, sum = 0;
  for (std::int64_t i = 0; i < all; ++i) most = fmaxf(most, scores[i]);
  for (std::int64_t i = 0; i < all; ++i) sum += expf(scores[i] - most);
  for (std::int64_t k = thread(); k < dim; k += kThreads) {
    float mixed = 0;
    for (std::int64_t i = 0; i < all; ++i) mixed = fmaf(expf(scores[i] - most) / sum, row_of(i)[k], mixed);
    element<float>(p.out, t, k) = mixed;
  }
}

// A thread block processes one head of a token.
template <class T>
__global__ void __launch_bounds__(kHeadThreads) mix_heads_kernel(MixHeadsArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t t = block_x(), head = block_y(), dim = p.q.size(2);
  const T* q = &element<T>(p.q, t, element_at(head, p.q.stride[1], 0));
  float score = 0;
  for (std::int64_t k = thread(); k < dim; k += kHeadThreads)
    score = fmaf(to_float(q[k]), element<float>(p.weight, head, k), score);
  score = block_sum(score, partials) + items<float>(p.bias)[head];
  const float share = 1 / (1 + expf(-score));
  for (std::int64_t k = head * dim + thread(); k < (head + 1) * dim; k += kHeadThreads) {
    const float second = to_float(element<T>(p.second, t, k));
    element<T>(p.y, t, k) = from_float<T>(fmaf(share, to_float(element<T>(p.first, t, k)) - second, second));
  }
}

}  // namespace

void run_mix_sources(Stream& stream, const MixSourcesArgs& args) {
  launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, mix_sources_kernel, args);
}

void run_mix_heads(Stream& stream, const MixHeadsArgs& args) {
  const dim3 grid(static_cast<unsigned>(args.q.size(0)), static_cast<unsigned>(args.q.size(1)));
  for_activation(args.q.dtype, [&](auto t) {
    launch(handle_of(stream), grid, kHeadThreads, 0, mix_heads_kernel<decltype(t)>, args);
  });
}

}  // namespace octavo::cuda
