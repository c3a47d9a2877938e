// Operators that process each row separately.
#include "kernels/cuda/weight_rows.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLongThreads = 1024, kLong = 2048;  // long rows get more threads, because a single row waits
                                                  // for memory

template <class T>
__device__ T& element(const Rows& rows, std::int64_t row, std::int64_t column) {
  return static_cast<T*>(rows.data)[element_at(row, rows.stride, column)];
}

// Statistics of a row; the normalised row, before weight and bias, is (x - mean) * scale.
struct Moments {
  float mean, scale;
};

// value(i): element i of the row. Every thread of the thread block must call it.
template <int kCount = kThreads, class Value>
__device__ Moments moments_of(const NormParams& norm, std::int64_t dim, float* partials, Value value) {
  if (norm.kind == NormKind::affine) return {0, 1};
  const auto count = static_cast<float>(dim);
  float mean = 0;
  if (norm.kind == NormKind::layer) {
    for (std::int64_t i = thread(); i < dim; i += kCount) mean += value(i);
    mean = block_sum(mean, partials) / count;
  }
  float squares = 0;
  for (std::int64_t i = thread(); i < dim; i += kCount)
    squares = fmaf(value(i) - mean, value(i) - mean, squares);
  squares = block_sum(squares, partials);
  return {mean, 1.0f / sqrtf(squares / count + norm.eps)};
}

__device__ float normalized(const NormParams& norm, const Moments& m, float x, std::int64_t i) {
  const float y = (x - m.mean) * m.scale * norm.weight[i];
  return norm.bias != nullptr ? y + norm.bias[i] : y;
}

__global__ void embed_kernel(EmbedParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x();
  for (std::int64_t k = thread(); k < p.dim; k += kThreads) {
    float value = weight_at(p.table, p.ids[row], k) * p.scale;
    if (p.position_table.data != nullptr) value += weight_at(p.position_table, p.positions[row], k);
    if (p.type_table.data != nullptr) value += weight_at(p.type_table, p.types[row], k);
    element<float>(p.out, row, k) = value;
  }
}

template <class Delta, class Out, int kCount>
__global__ void __launch_bounds__(kCount) add_norm_kernel(AddNormParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x();
  // needs no barrier: each thread reads only elements that it has written itself
  if (p.delta.data != nullptr) {
    const auto delta = [&](std::int64_t i) { return to_float(element<Delta>(p.delta, row, i)); };
    Moments m{0, 1};
    if (p.delta_norm.kind != NormKind::none) m = moments_of<kCount>(p.delta_norm, p.dim, partials, delta);
    for (std::int64_t i = thread(); i < p.dim; i += kCount) {
      const float x =
          p.delta_norm.kind == NormKind::none ? delta(i) : normalized(p.delta_norm, m, delta(i), i);
      float& residual = element<float>(p.residual, row, i);
      residual = fmaf(p.delta_scale, x, residual);
    }
  }
  if (p.residual_scale != nullptr)
    for (std::int64_t i = thread(); i < p.dim; i += kCount) element<float>(p.residual, row, i) *= *p.residual_scale;
  if (p.out.data == nullptr && !p.replace) return;
  const auto residual = [&](std::int64_t i) { return element<float>(p.residual, row, i); };
  Moments m{0, 1};
  if (p.norm.kind != NormKind::none) m = moments_of<kCount>(p.norm, p.dim, partials, residual);
  for (std::int64_t i = thread(); i < p.dim; i += kCount) {
    const float x = p.norm.kind == NormKind::none ? residual(i) : normalized(p.norm, m, residual(i), i);
    if (p.replace) element<float>(p.residual, row, i) = x;
    if (p.out.data != nullptr) element<Out>(p.out, row, i) = from_float<Out>(x);
  }
}

__device__ float activation(Activation kind, float x) {
  constexpr float kInverseRoot2 = 0.70710678f, kRoot2OverPi = 0.79788456f;
  switch (kind) {
    case Activation::silu:
      return x / (1 + expf(-x));
    case Activation::gelu:
      return 0.5f * x * erfcf(-x * kInverseRoot2);
    case Activation::gelu_tanh:
      return 0.5f * x * (1 + tanhf(kRoot2OverPi * (x + 0.044715f * x * x * x)));
    case Activation::relu:
      return x < 0 ? 0 : x;  // NaN remains NaN
    case Activation::relu_squared:
      return x < 0 ? 0 : x * x;
    case Activation::sigmoid:
      return 1 / (1 + expf(-x));
    case Activation::tanh:
      return tanhf(x);
    case Activation::swigluoai:
    case Activation::xielu:
      break;
  }
  return x;
}

__device__ float xielu(float x, const float* slopes) {
  if (x > 0) return log1pf(expf(slopes[0])) * x * x + 0.5f * x;
  return (expm1f(x > -1e-6f ? -1e-6f : x) - x) * (0.5f + log1pf(expf(slopes[1]))) + 0.5f * x;
}

template <class T>
__global__ void activate_kernel(ActivateParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.hidden) return;
  const float x = to_float(element<T>(p.x, row, k));
  const float up = p.gated ? to_float(element<T>(p.x, row, p.hidden + k)) : 1;
  float y;
  if (p.activation == Activation::swigluoai) {
    const float gate = x > p.limit ? p.limit : x;
    const float clamped = up > p.limit ? p.limit : up < -p.limit ? -p.limit : up;
    y = gate / (1 + expf(-p.alpha * gate)) * (clamped + 1);
  } else if (p.activation == Activation::xielu) {
    y = xielu(x, p.slopes);
  } else {
    y = activation(p.activation, x) * up;
  }
  element<T>(p.y, row, k) = from_float<T>(y);
}

// A thread block processes one row.
template <class T>
__global__ void __launch_bounds__(kThreads) keep_tail_kernel(KeepTailParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x();
  const auto x = [&](std::int64_t i) { return to_float(element<T>(p.x, row, i)); };
  const Moments m = moments_of({.kind = NormKind::layer}, p.dim, partials, x);
  const float cut = m.mean + p.deviations / m.scale;
  for (std::int64_t i = thread(); i < p.dim; i += kThreads)
    element<T>(p.x, row, i) = from_float<T>(activation(Activation::relu, x(i) - cut));
}

template <class T>
__global__ void scale_rows_kernel(ScaleRowsParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.dim) return;
  const float factor = p.factors[p.rows != nullptr ? p.rows[row] : row];
  element<T>(p.y, row, k) = from_float<T>(to_float(element<T>(p.x, row, k)) * factor);
}

template <class T>
__global__ void clamp_kernel(ClampParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.dim) return;
  const float x = to_float(element<T>(p.x, row, k));
  element<T>(p.y, row, k) = from_float<T>(x < p.least[k] ? p.least[k] : x > p.most[k] ? p.most[k] : x);
}

// A thread block processes one head, or one row if nothing is normalised.
template <class T>
__global__ void __launch_bounds__(kThreads) gate_kernel(GateParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x() / p.heads, first = block_x() % p.heads * p.dim;
  const auto open = [&](std::int64_t i) {
    return activation(p.activation, to_float(element<T>(p.gate, row, first + i)) * p.gate_scale);
  };
  const auto x = [&](std::int64_t i) {
    return to_float(element<T>(p.x, row, first + i)) * (p.gate_first ? open(i) : 1);
  };
  if (p.weight_stride > 0) p.norm.weight += block_x() % p.heads * p.weight_stride;
  const bool normed = p.norm.kind != NormKind::none;
  Moments m{0, 1};
  if (normed) m = moments_of(p.norm, p.dim, partials, x);
  for (std::int64_t i = thread(); i < p.dim; i += kThreads) {
    const float value = normed ? normalized(p.norm, m, x(i), i) : x(i);
    element<T>(p.y, row, first + i) = from_float<T>(p.gate_first ? value : value * open(i));
  }
}

template <class T>
__global__ void gather_kernel(GatherRowsParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = block_y() * kThreads + thread();
  if (k < p.dim) element<T>(p.out, row, k) = element<T>(p.x, p.rows[row], k);
}

__global__ void pool_kernel(PoolParams p) {
  wait_for_kernels();
  const std::int64_t s = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.dim) return;
  const std::int64_t first = p.pool == Pool::last ? p.starts[s + 1] - 1 : p.starts[s];
  const std::int64_t past = p.pool == Pool::first ? first + 1 : p.starts[s + 1];
  float sum = element<float>(p.x, first, k);
  for (std::int64_t i = first + 1; i < past; ++i) {
    const float x = element<float>(p.x, i, k);
    if (p.pool == Pool::max)
      sum = x > sum || x != x ? x : sum;  // also true for NaN
    else
      sum += p.pool == Pool::weighted ? static_cast<float>(i - first + 1) * x : x;
  }
  const auto count = static_cast<float>(past - first);
  if (p.pool == Pool::mean) sum /= count;
  if (p.pool == Pool::sum_by_root) sum /= sqrtf(count);
  if (p.pool == Pool::weighted) sum /= count * (count + 1) / 2;
  element<float>(p.out, s, k) = sum;
}

template <class X, class Y>
__global__ void add_rows_kernel(AddRowsParams p) {
  wait_for_kernels();
  const std::int64_t place = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.dim) return;
  Y& sum = element<Y>(p.y, p.rows[place], k);
  sum = from_float<Y>(to_float(sum) + to_float(element<X>(p.x, place, k)));
}

__global__ void angles_kernel(AnglesParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), pair = block_y() * kThreads + thread();
  if (pair >= p.pairs) return;
  const float angle = static_cast<float>(p.positions[row]) * p.frequencies[pair];
  element<float>(p.cos, row, pair) = cosf(angle) * p.scale;
  element<float>(p.sin, row, pair) = sinf(angle) * p.scale;
}

// A row without a token (-1) counts as token 0: its sequence ends before the token is used.
__global__ void put_sampled_kernel(PutSampledParams p) {
  wait_for_kernels();
  const std::int64_t i = block_x() * kThreads + thread();
  if (i >= p.n) return;
  const std::int32_t id = p.sampled[p.rows[i]];
  p.ids[p.tokens[i]] = id < 0 ? 0 : id;
}

__global__ void scale_logits_kernel(ScaleLogitsParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = block_y() * kThreads + thread();
  if (k >= p.vocab) return;
  float& logit = element<float>(p.logits, row, k);
  const float x = logit * p.scale;
  logit = p.soft_cap > 0 ? p.soft_cap * tanhf(x / p.soft_cap) : x;
}

dim3 row_grid(std::int64_t rows) { return {static_cast<unsigned>(rows)}; }
dim3 element_grid(std::int64_t rows, std::int64_t columns) {
  return {static_cast<unsigned>(rows), static_cast<unsigned>((columns + kThreads - 1) / kThreads)};
}

}  // namespace

void embed(StreamHandle stream, const EmbedParams& p) {
  launch(stream, row_grid(p.n), kThreads, 0, embed_kernel, p);
}

void add_norm(StreamHandle stream, const AddNormParams& p) {
  for_activation(p.delta.format, [&](auto delta) {
    for_activation(p.out.format, [&](auto out) {
      using Delta = decltype(delta);
      using Out = decltype(out);
      p.dim > kLong ? launch(stream, row_grid(p.n), kLongThreads, 0, add_norm_kernel<Delta, Out, kLongThreads>, p)
                    : launch(stream, row_grid(p.n), kThreads, 0, add_norm_kernel<Delta, Out, kThreads>, p);
    });
  });
}

void activate(StreamHandle stream, const ActivateParams& p) {
  for_activation(p.x.format, [&](auto t) {
    launch(stream, element_grid(p.n, p.hidden), kThreads, 0, activate_kernel<decltype(t)>, p);
  });
}

void keep_tail(StreamHandle stream, const KeepTailParams& p) {
  for_activation(p.x.format,
                 [&](auto t) { launch(stream, row_grid(p.n), kThreads, 0, keep_tail_kernel<decltype(t)>, p); });
}

void scale_rows(StreamHandle stream, const ScaleRowsParams& p) {
  for_activation(p.x.format, [&](auto t) {
    launch(stream, element_grid(p.n, p.dim), kThreads, 0, scale_rows_kernel<decltype(t)>, p);
  });
}

void clamp(StreamHandle stream, const ClampParams& p) {
  for_activation(p.x.format, [&](auto t) {
    launch(stream, element_grid(p.n, p.dim), kThreads, 0, clamp_kernel<decltype(t)>, p);
  });
}

void gate(StreamHandle stream, const GateParams& p) {
  for_activation(p.y.format, [&](auto t) {
    launch(stream, row_grid(p.n * p.heads), kThreads, 0, gate_kernel<decltype(t)>, p);
  });
}

void gather_rows(StreamHandle stream, const GatherRowsParams& p) {
  for_activation(p.x.format, [&](auto t) {
    launch(stream, element_grid(p.n, p.dim), kThreads, 0, gather_kernel<decltype(t)>, p);
  });
}

void pool(StreamHandle stream, const PoolParams& p) {
  launch(stream, element_grid(p.sequences, p.dim), kThreads, 0, pool_kernel, p);
}

void add_rows(StreamHandle stream, const AddRowsParams& p) {
  for_activation(p.x.format, [&](auto x) {
    for_activation(p.y.format, [&](auto y) {
      launch(stream, element_grid(p.places, p.dim), kThreads, 0, add_rows_kernel<decltype(x), decltype(y)>, p);
    });
  });
}

void angles(StreamHandle stream, const AnglesParams& p) {
  launch(stream, element_grid(p.n, p.pairs), kThreads, 0, angles_kernel, p);
}

void put_sampled(StreamHandle stream, const PutSampledParams& p) {
  launch(stream, row_grid((p.n + kThreads - 1) / kThreads), kThreads, 0, put_sampled_kernel, p);
}

void scale_logits(StreamHandle stream, const ScaleLogitsParams& p) {
  launch(stream, element_grid(p.n, p.vocab), kThreads, 0, scale_logits_kernel, p);
}

}  // namespace octavo::cuda
