#include <algorithm>

#include "kernels/cuda/device.h"
#include "kernels/cuda/host_products.h"

namespace octavo::cuda {

static Rows rows_of(const View& view) {
  if (!view) return {};
  return {view.data, format_of(view.dtype), view.stride[0]};
}
template <class T>
T* data_of(const View& view) {
  return view ? view.as<T>() : nullptr;
}

// Rounds x if the matrix requires it. `rows` is the number of rows of x.
static MatmulParams with_rounded_x(Stream& stream, MatmulParams p, std::int64_t rows) {
  const Fp8Rounding& rounding = p.w.rounding;
  if (rounding.group == 0 || rows == 0) return p;
  const std::int64_t groups = rounding.groups(p.cols);
  const std::int64_t stride = (p.cols + kFp8Columns - 1) / kFp8Columns * kFp8Columns;
  auto* const codes = static_cast<std::uint8_t*>(cuda_stream(stream).rounded_x(
      static_cast<std::size_t>(rows * (stride + groups * std::int64_t{sizeof(float)}))));
  auto* const scales = reinterpret_cast<float*>(codes + rows * stride);
  round_rows(handle_of(stream), {p.x, rows, p.cols, rounding, codes, stride, scales});
  p.x = {codes, Format::f8, stride};
  p.x_scales = {scales, rounding.group, groups};
  return p;
}

void run_matmul(Stream& stream, const MatmulArgs& args) {
  const MatmulParams product{.m = args.y.size(0),
                             .rows = args.w.rows(),
                             .cols = args.w.cols(),
                             .x = rows_of(args.x),
                             .w = numbers_of(args.w),
                             .bias = data_of<float>(args.bias),
                             .y = rows_of(args.y),
                             .hopper = cuda_stream(stream).hopper()};
  matmul(handle_of(stream), with_rounded_x(stream, product, args.x.size(0)));
}

void run_grouped_matmul(Stream& stream, const GroupedMatmulArgs& args) {
  if (static_cast<const CudaWeight&>(*args.w[0]).host() != nullptr)
    return cuda_stream(stream).host_products()->grouped_matmul(cuda_stream(stream), args);
  constexpr std::size_t kMost = 1024;
  CHECK(args.w.size() <= kMost, "{} experts", args.w.size());
  const std::byte* addresses[kMost];
  WeightRows w = numbers_of(*args.w[0]);
  for (std::size_t e = 0; e < args.w.size(); ++e) {
    const WeightRows& own = numbers_of(*args.w[e]);
    CHECK(own.format == w.format && own.group == w.group && own.stride == w.stride &&
              own.rounding.group == w.rounding.group,
          "experts of two formats");
    addresses[e] = own.data;
    w.rounding.scale = std::max(w.rounding.scale, own.rounding.scale);
  }
  w.data = nullptr;
  const MatmulParams product{.m = args.y.size(0),
                             .rows = args.w[0]->rows(),
                             .cols = args.w[0]->cols(),
                             .x = rows_of(args.x),
                             .w = w,
                             .bias = data_of<float>(args.bias),
                             .y = rows_of(args.y),
                             .x_rows = data_of<std::int32_t>(args.rows),
                             .hopper = cuda_stream(stream).hopper()};
  grouped_matmul(handle_of(stream), {.product = with_rounded_x(stream, product, args.x.size(0)),
                                     .w = addresses,
                                     .experts = std::ssize(args.w),
                                     .starts = args.starts.as<std::int32_t>()});
}

void run_head_matmul(Stream& stream, const HeadMatmulArgs& args) {
  matmul(handle_of(stream), {.m = args.y.size(0),
                             .rows = args.y.size(2),
                             .cols = args.w.cols(),
                             .x = rows_of(args.x),
                             .w = numbers_of(args.w),
                             .bias = nullptr,
                             .y = rows_of(args.y),
                             .heads = static_cast<int>(args.y.size(1)),
                             .x_head = args.x.stride[1],
                             .y_head = args.y.stride[1],
                             .hopper = cuda_stream(stream).hopper()});
}

static void run_row_attention(Stream& stream, const AttentionArgs& args) {
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  RowAttentionParams params{.q = rows_of(args.q),
                            .out = rows_of(args.out),
                            .n = args.q.size(0),
                            .heads = args.q.size(1),
                            .dim = args.q.size(2),
                            .cache = cache_of(args.cache),
                            .entries = {},
                            .sequences = plan.tables(),
                            .entry_sequences = {},
                            .sequence_count = plan.sequences(),
                            .window = args.window,
                            .rate = 1,
                            .scale = args.scale,
                            .sinks = data_of<float>(args.sinks)};
  if (args.entry_plan != nullptr) {
    params.entries = cache_of(args.entries);
    params.entry_sequences = static_cast<const CudaAttentionPlan&>(*args.entry_plan).tables();
    params.rate = args.entries.spec.rate;
  }
  if (args.chosen) {
    params.chosen = args.chosen.as<std::int32_t>();
    params.chosen_stride = args.chosen.stride[0];
    params.chosen_most = args.chosen.size(1);
  }
  row_attention(handle_of(stream), params);
}

// Returns the queries as products with keys of the cache need them. The plan's memory for them is used.
static Rows queries_for(Stream& stream, const CudaAttentionPlan& plan, const KvSpec& cache, const View& q) {
  const Rows rows = rows_of(q);
  if (!cache.rotated()) return rows;
  const Rows rotated{plan.rotated_queries(), rows.format, q.size(1) * q.size(2)};
  rotate_heads(handle_of(stream), {rows, rotated, q.size(0), q.size(1), static_cast<int>(q.size(2))});
  return rotated;
}

void run_attention(Stream& stream, const AttentionArgs& args) {
  if (args.cache.spec.shared_rows()) return run_row_attention(stream, args);
  AttentionParams params{};
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  CHECK(plan.window() == 0 || plan.window() == args.window, "a plan for a window of {}, a layer of {}",
        plan.window(), args.window);
  CHECK(plan.causal() == args.causal, "the plan of a layer that is causal and one that is not");
  params.sequences = plan.tables();
  params.work = plan.work();
  params.q = queries_for(stream, plan, args.cache.spec, args.q);
  params.out = rows_of(args.out);
  params.q_heads = static_cast<int>(args.q.size(1));
  params.group = params.q_heads / args.cache.spec.kv_heads;
  params.cache = cache_of(args.cache);
  params.scale = args.scale;
  params.window = args.window;
  params.chunk = args.chunk;
  params.causal = args.causal;
  params.soft_cap = args.soft_cap;
  params.slopes = data_of<float>(args.slopes);
  if (args.distance_bias)
    params.distance_bias = {args.distance_bias.as<float>(), static_cast<int>(args.distance_bias.size(1) / 2)};
  params.sinks = data_of<float>(args.sinks);
  if (args.chosen) {
    params.chosen = args.chosen.as<std::int32_t>();
    const bool by_head = args.chosen.rank == 3;
    params.chosen_stride = args.chosen.stride[0];
    params.chosen_head_stride = by_head ? args.chosen.stride[1] : 0;
    params.chosen_most = args.chosen.size(by_head ? 2 : 1);
    params.chosen_run = args.chosen_tokens;
  }
  attention(handle_of(stream), params);
  if (args.cache.spec.rotated())
    rotate_heads(handle_of(stream),
                 {params.out, params.out, args.q.size(0), args.q.size(1), args.cache.spec.head_dim});
}

void run_choose_tokens(Stream& stream, const ChooseTokensArgs& args) {
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  ChooseParams params{.q = rows_of(args.q),
                      .n = args.q.size(0),
                      .heads = args.q.size(1),
                      .q_head = args.q.stride[1],
                      .weights = rows_of(args.weights),
                      .cache = cache_of(args.cache),
                      .rate = args.cache.spec.rate,
                      .sequence_count = plan.sequences(),
                      .sequences = plan.tables(),
                      .chosen = args.chosen.as<std::int32_t>(),
                      .chosen_stride = args.chosen.stride[0],
                      .most = args.chosen.size(1)};
  plan.describe_scores(params);
  choose_tokens(handle_of(stream), params);
}

void run_choose_blocks(Stream& stream, const ChooseBlocksArgs& args) {
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  choose_blocks(handle_of(stream), {.q = queries_for(stream, plan, args.cache.spec, args.q),
                                    .n = args.q.size(0),
                                    .heads = args.q.size(1),
                                    .q_head = args.q.stride[1],
                                    .cache = cache_of(args.cache),
                                    .sequence_count = plan.sequences(),
                                    .sequences = plan.tables(),
                                    .block = args.block,
                                    .local = args.local,
                                    .most_blocks = (plan.max_length() + args.block - 1) / args.block,
                                    .chosen = args.chosen.as<std::int32_t>(),
                                    .chosen_stride = args.chosen.stride[0],
                                    .chosen_head = args.chosen.stride[1],
                                    .most = args.chosen.size(2)});
}

}  // namespace octavo::cuda
