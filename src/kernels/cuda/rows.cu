// Operators that process each row separately.
#include "kernels/cuda/norm_rows.h"
#include "kernels/cuda/weight_rows.h"
#include "kernels/operators/attention.h"
#include "kernels/operators/experts.h"
#include "kernels/operators/rows.h"
#include "kernels/operators/states.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = kColumnThreads;
constexpr int kLongThreads = 1024, kLong = 2048;  // long rows get more threads, because a single row waits
                                                  // for memory

__global__ void own_ids_kernel(OwnIdsArgs p) {
  wait_for_kernels();
  const std::int64_t i = block_x() * kThreads + thread();
  if (i >= p.own.size(0)) return;
  const std::int32_t id = items<std::int32_t>(p.ids)[i];
  items<std::int32_t>(p.own)[i] = p.rows.has(id) ? id - p.rows.first : 0;
}

__global__ void keep_own_rows_kernel(KeepOwnRowsArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k < p.x.size(1) && !p.rows.has(items<std::int32_t>(p.ids)[row])) element<float>(p.x, row, k) = 0;
}

// The Weight objects in `p` are in host memory, so the kernel gets the addresses of their rows as separate
// parameters.
__global__ void embed_kernel(EmbedArgs p, WeightRows table, WeightRows position_table,
                             WeightRows type_table) {
  wait_for_kernels();
  const std::int64_t row = block_x();
  for (std::int64_t k = thread(); k < p.out.size(1); k += kThreads) {
    float value = weight_at(table, items<std::int32_t>(p.ids)[row], k) * p.scale;
    if (position_table.data != nullptr)
      value += weight_at(position_table, items<std::int32_t>(p.positions)[row], k);
    if (type_table.data != nullptr) value += weight_at(type_table, items<std::int32_t>(p.types)[row], k);
    element<float>(p.out, row, k) = value;
  }
}

template <class Delta, class Out, int kCount>
__global__ void __launch_bounds__(kCount) add_norm_kernel(AddNormArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x(), dim = p.residual.size(1);
  // No barrier is needed: each thread reads only elements that it has written itself.
  if (p.delta) {
    const auto delta = [&](std::int64_t i) { return to_float(element<Delta>(p.delta, row, i)); };
    const bool normed = p.delta_norm.kind != NormKind::none;
    Moments m{0, 1};
    if (normed) m = moments_of<kCount>(p.delta_norm.kind, p.delta_norm.eps, dim, partials, delta);
    for (std::int64_t i = thread(); i < dim; i += kCount) {
      const float x = normed ? normalized(p.delta_norm, m, delta(i), i) : delta(i);
      float& residual = element<float>(p.residual, row, i);
      residual = fmaf(p.delta_scale, x, residual);
    }
  }
  if (p.residual_scale)
    for (std::int64_t i = thread(); i < dim; i += kCount)
      element<float>(p.residual, row, i) *= *items<float>(p.residual_scale);
  if (!p.out && !p.replace) return;
  const auto residual = [&](std::int64_t i) { return element<float>(p.residual, row, i); };
  const bool normed = p.norm.kind != NormKind::none;
  Moments m{0, 1};
  if (normed) m = moments_of<kCount>(p.norm.kind, p.norm.eps, dim, partials, residual);
  for (std::int64_t i = thread(); i < dim; i += kCount) {
    const float x = normed ? normalized(p.norm, m, residual(i), i) : residual(i);
    if (p.replace) element<float>(p.residual, row, i) = x;
    if (p.out) element<Out>(p.out, row, i) = from_float<Out>(x);
  }
}

template <class T>
__global__ void sum_squares_kernel(SumSquaresArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x();
  float sum = 0;
  for (std::int64_t k = thread(); k < p.x.size(1); k += kThreads) {
    const float x = to_float(element<T>(p.x, row, k));
    sum = fmaf(x, x, sum);
  }
  sum = block_sum(sum, partials);
  if (thread() == 0) element<float>(p.sums, row, 0) = sum * static_cast<float>(p.factor);
}

template <class T>
__global__ void norm_by_squares_kernel(NormBySquaresArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k >= p.x.size(1)) return;
  const float mean = element<float>(p.sums, row, 0) / static_cast<float>(p.count);
  T& x = element<T>(p.x, row, k);
  x = from_float<T>(to_float(x) * (1.0f / sqrtf(mean + p.eps)) * items<float>(p.weight)[k]);
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
    case Activation::softplus:
      return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
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
__global__ void activate_kernel(ActivateArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread(), hidden = p.y.size(1);
  if (k >= hidden) return;
  const float x = to_float(element<T>(p.x, row, k));
  const float up = p.gated ? to_float(element<T>(p.x, row, hidden + k)) : 1;
  float y;
  if (p.activation == Activation::swigluoai) {
    const float gate = x > p.limit ? p.limit : x;
    const float clamped = up > p.limit ? p.limit : up < -p.limit ? -p.limit : up;
    y = gate / (1 + expf(-p.alpha * gate)) * (clamped + 1);
  } else if (p.activation == Activation::xielu) {
    y = xielu(x, items<float>(p.slopes));
  } else {
    y = activation(p.activation, x) * up;
  }
  element<T>(p.y, row, k) = from_float<T>(y);
}

// A thread block processes one row.
template <class T>
__global__ void __launch_bounds__(kThreads) keep_tail_kernel(KeepTailArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x(), dim = p.x.size(1);
  const auto x = [&](std::int64_t i) { return to_float(element<T>(p.x, row, i)); };
  const Moments m = moments_of(NormKind::layer, 0, dim, partials, x);
  const float cut = m.mean + p.deviations / m.scale;
  for (std::int64_t i = thread(); i < dim; i += kThreads)
    element<T>(p.x, row, i) = from_float<T>(activation(Activation::relu, x(i) - cut));
}

template <class T>
__global__ void scale_rows_kernel(ScaleRowsArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k >= p.y.size(1)) return;
  const float factor = items<float>(p.factors)[p.rows ? items<std::int32_t>(p.rows)[row] : row];
  element<T>(p.y, row, k) = from_float<T>(to_float(element<T>(p.x, row, k)) * factor);
}

template <class T>
__global__ void clamp_kernel(ClampArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k >= p.y.size(1)) return;
  const float x = to_float(element<T>(p.x, row, k));
  const float least = items<float>(p.least)[k], most = items<float>(p.most)[k];
  element<T>(p.y, row, k) = from_float<T>(x < least ? least : x > most ? most : x);
}

template <class T>
__global__ void __launch_bounds__(kThreads) softmax_kernel(SoftmaxArgs p) {
  OCTAVO_SHARED(float, partials, [kWarp]);
  wait_for_kernels();
  const std::int64_t row = block_x(), dim = p.x.size(1);
  const auto value = [&](std::int64_t k) { return to_float(element<T>(p.x, row, k)); };
  float most = value(0);
  for (std::int64_t k = thread(); k < dim; k += kThreads) most = fmaxf(most, value(k));
  most = block_max(most, partials);
  float sum = 0;
  for (std::int64_t k = thread(); k < dim; k += kThreads) sum += expf(value(k) - most);
  sum = block_sum(sum, partials);
  for (std::int64_t k = thread(); k < p.y.size(1); k += kThreads)
    element<T>(p.y, row, k) = from_float<T>(k < dim ? expf(value(k) - most) / sum : 0.0f);
}

// Returns the size of a head; without a norm, a row is one head.
OCTAVO_HOST_DEVICE std::int64_t head_dim(const GateArgs& p) {
  if (p.norm.kind == NormKind::none) return p.y.size(1);
  return p.norm.weight.rank == 2 ? p.norm.weight.size(1) : p.norm.weight.size(0);
}

// A thread block processes one head.
template <class T>
__global__ void __launch_bounds__(kThreads) gate_kernel(GateArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t row = block_x(), dim = head_dim(p), first = block_y() * dim;
  const auto open = [&](std::int64_t i) {
    return activation(p.activation, to_float(element<T>(p.gate, row, first + i)) * p.gate_scale);
  };
  const auto x = [&](std::int64_t i) {
    return to_float(element<T>(p.x, row, first + i)) * (p.gate_first ? open(i) : 1);
  };
  const std::int64_t first_weight = p.norm.weight.rank == 2 ? first : 0;
  const bool normed = p.norm.kind != NormKind::none;
  Moments m{0, 1};
  if (normed) m = moments_of(p.norm.kind, p.norm.eps, dim, partials, x);
  for (std::int64_t i = thread(); i < dim; i += kThreads) {
    const float value = normed ? normalized(p.norm, m, x(i), first_weight + i) : x(i);
    element<T>(p.y, row, first + i) = from_float<T>(p.gate_first ? value : value * open(i));
  }
}

template <class T>
__global__ void gather_kernel(GatherRowsArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k < p.out.size(1)) element<T>(p.out, row, k) = element<T>(p.x, items<std::int32_t>(p.rows)[row], k);
}

__global__ void pool_kernel(PoolArgs p) {
  wait_for_kernels();
  const std::int64_t s = block_x(), k = column_of_thread();
  if (k >= p.out.size(1)) return;
  const std::int32_t* starts = items<std::int32_t>(p.starts);
  const std::int64_t first = p.pool == Pool::last ? starts[s + 1] - 1 : starts[s];
  const std::int64_t past = p.pool == Pool::first ? first + 1 : starts[s + 1];
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
__global__ void add_rows_kernel(AddRowsArgs p) {
  wait_for_kernels();
  const std::int64_t x_row = block_x(), k = column_of_thread();
  if (k >= p.y.size(1) || !p.adds(x_row)) return;
  Y& sum = element<Y>(p.y, items<std::int32_t>(p.rows)[x_row], k);
  sum = from_float<Y>(to_float(sum) + to_float(element<X>(p.x, x_row, k)));
}

__global__ void angles_kernel(AnglesArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), pair = column_of_thread();
  if (pair >= p.cos.size(1)) return;
  const float position = static_cast<float>(items<std::int32_t>(p.positions)[row]);
  const float angle = position * items<float>(p.frequencies)[pair];
  element<float>(p.cos, row, pair) = cosf(angle) * p.scale;
  element<float>(p.sin, row, pair) = sinf(angle) * p.scale;
}

// A row without a token (-1) counts as token 0: its sequence ends before the token is used.
__global__ void put_sampled_kernel(PutSampledArgs p) {
  wait_for_kernels();
  const std::int64_t i = block_x() * kThreads + thread();
  if (i >= p.tokens.size(0)) return;
  const std::int32_t id = items<std::int32_t>(p.sampled)[items<std::int32_t>(p.rows)[i]];
  items<std::int32_t>(p.ids)[items<std::int32_t>(p.tokens)[i]] = id < 0 ? 0 : id;
}

__global__ void scale_logits_kernel(ScaleLogitsArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), k = column_of_thread();
  if (k >= p.logits.size(1)) return;
  float& logit = element<float>(p.logits, row, k);
  const float x = logit * p.scale;
  logit = p.soft_cap > 0 ? p.soft_cap * tanhf(x / p.soft_cap) : x;
}

// Launches a kernel with a thread for each element of `out`.
template <class Args>
void launch_columns(Stream& stream, const View& out, void (*kernel)(Args), const Args& args) {
  launch(handle_of(stream), column_grid(out.size(0), out.size(1)), kColumnThreads, 0, kernel, args);
}

}  // namespace

void run_own_ids(Stream& stream, const OwnIdsArgs& args) {
  launch(handle_of(stream), row_grid((args.own.size(0) + kThreads - 1) / kThreads), kThreads, 0,
         own_ids_kernel, args);
}

void run_keep_own_rows(Stream& stream, const KeepOwnRowsArgs& args) {
  launch_columns(stream, args.x, keep_own_rows_kernel, args);
}

void run_embed(Stream& stream, const EmbedArgs& args) {
  const auto rows = [](const Weight* table) { return table != nullptr ? numbers_of(*table) : WeightRows{}; };
  launch(handle_of(stream), row_grid(args.out.size(0)), kThreads, 0, embed_kernel, args, rows(&args.table),
         rows(args.position_table), rows(args.type_table));
}

void run_add_norm(Stream& stream, const AddNormArgs& args) {
  for_activation(args.delta.dtype, [&](auto delta) {
    for_activation(args.out.dtype, [&](auto out) {
      using Delta = decltype(delta);
      using Out = decltype(out);
      const bool is_long = args.residual.size(1) > kLong;
      launch(handle_of(stream), row_grid(args.residual.size(0)), is_long ? kLongThreads : kThreads, 0,
             is_long ? add_norm_kernel<Delta, Out, kLongThreads> : add_norm_kernel<Delta, Out, kThreads>,
             args);
    });
  });
}

void run_sum_squares(Stream& stream, const SumSquaresArgs& args) {
  for_activation(args.x.dtype, [&](auto t) {
    launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, sum_squares_kernel<decltype(t)>, args);
  });
}

void run_norm_by_squares(Stream& stream, const NormBySquaresArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_columns(stream, args.x, norm_by_squares_kernel<decltype(t)>, args); });
}

void run_activate(Stream& stream, const ActivateArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_columns(stream, args.y, activate_kernel<decltype(t)>, args); });
}

void run_keep_tail(Stream& stream, const KeepTailArgs& args) {
  for_activation(args.x.dtype, [&](auto t) {
    launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, keep_tail_kernel<decltype(t)>, args);
  });
}

void run_scale_rows(Stream& stream, const ScaleRowsArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_columns(stream, args.y, scale_rows_kernel<decltype(t)>, args); });
}

void run_clamp(Stream& stream, const ClampArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_columns(stream, args.y, clamp_kernel<decltype(t)>, args); });
}

void run_softmax(Stream& stream, const SoftmaxArgs& args) {
  for_activation(args.x.dtype, [&](auto t) {
    launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, softmax_kernel<decltype(t)>, args);
  });
}

void run_gate(Stream& stream, const GateArgs& args) {
  const dim3 grid(static_cast<unsigned>(args.y.size(0)),
                  static_cast<unsigned>(args.y.size(1) / head_dim(args)));
  for_activation(args.y.dtype, [&](auto t) {
    launch(handle_of(stream), grid, kThreads, 0, gate_kernel<decltype(t)>, args);
  });
}

void run_gather_rows(Stream& stream, const GatherRowsArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_columns(stream, args.out, gather_kernel<decltype(t)>, args); });
}

void run_pool(Stream& stream, const PoolArgs& args) { launch_columns(stream, args.out, pool_kernel, args); }

void run_add_rows(Stream& stream, const AddRowsArgs& args) {
  for_activation(args.x.dtype, [&](auto x) {
    for_activation(args.y.dtype, [&](auto y) {
      launch(handle_of(stream), column_grid(args.rows.size(0), args.y.size(1)), kColumnThreads, 0,
             add_rows_kernel<decltype(x), decltype(y)>, args);
    });
  });
}

void run_angles(Stream& stream, const AnglesArgs& args) {
  launch_columns(stream, args.cos, angles_kernel, args);
}

void run_put_sampled(Stream& stream, const PutSampledArgs& args) {
  launch(handle_of(stream), row_grid((args.tokens.size(0) + kThreads - 1) / kThreads), kThreads, 0,
         put_sampled_kernel, args);
}

void run_scale_logits(Stream& stream, const ScaleLogitsArgs& args) {
  launch_columns(stream, args.logits, scale_logits_kernel, args);
}

}  // namespace octavo::cuda
