// The operators of ops.h in terms of the kernels.
#include <algorithm>

#include "kernels/backends.h"
#include "kernels/cuda/device.h"
#include "kernels/kv_exchange.h"

namespace octavo {
namespace cuda {
namespace {

constexpr int kMaxHeadDim = 256;

Rows rows_of(const View& view) {
  if (!view) return {};
  return {view.data, format_of(view.dtype), view.stride[0]};
}
template <class T>
T* data_of(const View& view) {
  return view ? view.as<T>() : nullptr;
}
NormParams params_of(const Norm& norm) {
  return {norm.kind, norm.eps, data_of<float>(norm.weight), data_of<float>(norm.bias)};
}
const WeightRows& numbers_of(const Weight& weight) { return static_cast<const CudaWeight&>(weight).numbers(); }

KvLayout layout_of(const KvSpec& spec, std::int64_t stride_bytes) {
  return {stride_bytes, spec.kv_heads, spec.head_dim, spec.block_size, static_cast<int>(size_of(spec.dtype)),
          spec.values_in_keys, spec.index_dim, spec.dtype == DType::i8};
}
KvCache cache_of(const KvLayer& cache) {
  return {cache.data, layout_of(cache.spec, cache.stride_bytes), format_of(cache.spec.dtype)};
}

// Tensor cores take both 16-bit formats.
DType activation_of(DType stored) { return stored; }

// ---- Attention.

std::int64_t kv_block_bytes(const KvSpec& spec) { return layout_of(spec, 0).block_bytes(); }

Result<> supports(const KvSpec& spec, int q_heads) {
  if (spec.shared_rows())
    return field_failure("head_dim", ErrorCode::unsupported,
                         "the CUDA backend has no attention yet whose keys are its values");
  const bool latent = spec.values_in_keys > 0;
  if (const int most = latent ? kMaxLatentKey : kMaxHeadDim;
      spec.head_dim < 8 || spec.head_dim % 8 != 0 || spec.head_dim > most)
    return field_failure(latent ? "kv_lora_rank" : "head_dim", ErrorCode::unsupported,
                         "keys of {} numbers; a multiple of 8 up to {} is needed", spec.head_dim, most);
  if (latent && (spec.kv_heads != 1 || spec.values_in_keys >= spec.head_dim))
    return field_failure("kv_lora_rank", ErrorCode::unsupported, "{} of keys of {} for {} heads",
                         spec.values_in_keys, spec.head_dim, spec.kv_heads);
  if (spec.index_dim > 0 && (!latent || spec.index_dim + spec.values_in_keys >= spec.head_dim))
    return field_failure("index_head_dim", ErrorCode::unsupported, "{} of keys of {} with latents of {}",
                         spec.index_dim, spec.head_dim, spec.values_in_keys);
  if (spec.block_size < 16 || spec.block_size % 16 != 0)
    return invalid("block_size", "{} is not a multiple of 16", spec.block_size);
  if (spec.kv_heads < 1 || q_heads < 1 || q_heads % spec.kv_heads != 0)
    return invalid("num_key_value_heads", "{} does not divide {} query heads", spec.kv_heads, q_heads);
  if (spec.dtype != DType::f32 && spec.dtype != DType::bf16 && spec.dtype != DType::f16 &&
      spec.dtype != DType::f8_e4m3 && spec.dtype != DType::i8)
    return field_failure("kv_cache_dtype", ErrorCode::unsupported, "the CUDA backend has no KV cache in {}",
                         name(spec.dtype));
  return {};
}

Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device& device, const AttentionLimits& limits) {
  TRY(auto plan, CudaAttentionPlan::make(static_cast<CudaDevice&>(device), limits));
  return plan;
}

void plan_attention(Stream& stream, const AttentionShape& shape, AttentionPlan& plan) {
  static_cast<CudaAttentionPlan&>(plan).fill(cuda_stream(stream), shape);
}

void run_attention(Stream& stream, const AttentionArgs& args) {
  AttentionParams params{};
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  CHECK(plan.window() == 0 || plan.window() == args.window, "a plan for a window of {}, a layer of {}",
        plan.window(), args.window);
  CHECK(plan.causal() == args.causal, "the plan of a layer that is causal and one that is not");
  CHECK(!args.distance_bias, "biases by distance on cuda");  // networks that have them are refused when they load
  plan.describe(params);
  params.q = rows_of(args.q);
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
  params.sinks = data_of<float>(args.sinks);
  if (args.chosen) {
    params.chosen = args.chosen.as<std::int32_t>();
    params.chosen_stride = args.chosen.stride[0];
    params.chosen_most = args.chosen.size(1);
  }
  attention(handle_of(stream), params);
}

void run_angles(Stream& stream, const AnglesArgs& args) {
  angles(handle_of(stream), {.n = args.cos.size(0),
                             .pairs = args.cos.size(1),
                             .positions = args.positions.as<std::int32_t>(),
                             .frequencies = args.frequencies.as<float>(),
                             .scale = args.scale,
                             .cos = rows_of(args.cos),
                             .sin = rows_of(args.sin)});
}

void run_qkv_store(Stream& stream, const QkvStoreArgs& args) {
  const auto weight_stride = [](const Norm& norm) {
    return norm.weight.rank == 2 ? norm.weight.stride[0] : 0;
  };
  qkv_store(handle_of(stream), {.n = args.q_out.size(0),
                                .qkv = rows_of(args.qkv),
                                .q_heads = args.q_heads,
                                .q_norm = params_of(args.q_norm),
                                .k_norm = params_of(args.k_norm),
                                .q_weight_stride = weight_stride(args.q_norm),
                                .k_weight_stride = weight_stride(args.k_norm),
                                .norm_whole_row = args.norm_whole_row,
                                .norm_turned = args.norm_turned,
                                .v_norm = params_of(args.v_norm),
                                .stores = args.stores,
                                .cos = args.rope.cos ? rows_of(args.rope.cos) : Rows{},
                                .sin = args.rope.sin ? rows_of(args.rope.sin) : Rows{},
                                .rotary_dim = args.rope.rotary_dim,
                                .interleaved = args.rope.interleaved,
                                .slots = args.slots.as<std::int64_t>(),
                                .cache = cache_of(args.cache),
                                .q_out = rows_of(args.q_out)});
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

void run_choose_tokens(Stream& stream, const ChooseTokensArgs& args) {
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  AttentionParams step{};
  plan.describe(step);
  ChooseParams params{.q = rows_of(args.q),
                      .n = args.q.size(0),
                      .heads = args.q.size(1),
                      .q_head = args.q.stride[1],
                      .weights = rows_of(args.weights),
                      .cache = cache_of(args.cache),
                      .sequences = plan.sequences(),
                      .query_starts = step.query_starts,
                      .lengths = step.lengths,
                      .tables = step.tables,
                      .table_starts = step.table_starts,
                      .chosen = args.chosen.as<std::int32_t>(),
                      .chosen_stride = args.chosen.stride[0],
                      .most = args.chosen.size(1)};
  plan.describe_scores(params);
  choose_tokens(handle_of(stream), params);
}

void run_latent_store(Stream& stream, const LatentStoreArgs& args) {
  latent_store(handle_of(stream), {.n = args.kv.size(0),
                                   .heads = static_cast<int>(args.q.size(1)),
                                   .kv = rows_of(args.kv),
                                   .index_keys = rows_of(args.index_keys),
                                   .norm = params_of(args.norm),
                                   .cos = rows_of(args.rope.cos),
                                   .sin = rows_of(args.rope.sin),
                                   .interleaved = args.rope.interleaved,
                                   .slots = args.slots.as<std::int64_t>(),
                                   .cache = cache_of(args.cache),
                                   .q = rows_of(args.q),
                                   .q_out = rows_of(args.q_out),
                                   .q_dim = args.q.size(2),
                                   .q_head = args.q.stride[1],
                                   .q_out_head = args.q_out.stride[1]});
}

// ---- Rows.

void run_embed(Stream& stream, const EmbedArgs& args) {
  const WeightRows positions = args.position_table != nullptr ? numbers_of(*args.position_table) : WeightRows{};
  const WeightRows types = args.type_table != nullptr ? numbers_of(*args.type_table) : WeightRows{};
  embed(handle_of(stream), {.n = args.out.size(0),
                            .dim = args.out.size(1),
                            .ids = args.ids.as<std::int32_t>(),
                            .table = numbers_of(args.table),
                            .scale = args.scale,
                            .positions = data_of<std::int32_t>(args.positions),
                            .position_table = positions,
                            .types = data_of<std::int32_t>(args.types),
                            .type_table = types,
                            .out = rows_of(args.out)});
}

void run_add_norm(Stream& stream, const AddNormArgs& args) {
  add_norm(handle_of(stream), {.n = args.residual.size(0),
                               .dim = args.residual.size(1),
                               .residual = rows_of(args.residual),
                               .delta = rows_of(args.delta),
                               .delta_scale = args.delta_scale,
                               .delta_norm = params_of(args.delta_norm),
                               .norm = params_of(args.norm),
                               .replace = args.replace,
                               .out = rows_of(args.out),
                               .residual_scale = data_of<float>(args.residual_scale)});
}

void run_matmul(Stream& stream, const MatmulArgs& args) {
  matmul(handle_of(stream), {.m = args.y.size(0),
                             .rows = args.w.rows(),
                             .cols = args.w.cols(),
                             .x = rows_of(args.x),
                             .w = numbers_of(args.w),
                             .bias = data_of<float>(args.bias),
                             .y = rows_of(args.y),
                             .hopper = cuda_stream(stream).hopper()});
}

void run_activate(Stream& stream, const ActivateArgs& args) {
  activate(handle_of(stream), {.n = args.y.size(0),
                               .hidden = args.y.size(1),
                               .x = rows_of(args.x),
                               .y = rows_of(args.y),
                               .activation = args.activation,
                               .gated = args.gated,
                               .alpha = args.alpha,
                               .limit = args.limit,
                               .slopes = data_of<float>(args.slopes)});
}

void run_keep_tail(Stream& stream, const KeepTailArgs& args) {
  keep_tail(
      handle_of(stream),
      {.n = args.x.size(0), .dim = args.x.size(1), .x = rows_of(args.x), .deviations = args.deviations});
}

void run_scale_rows(Stream& stream, const ScaleRowsArgs& args) {
  scale_rows(handle_of(stream), {.n = args.y.size(0),
                                 .dim = args.y.size(1),
                                 .x = rows_of(args.x),
                                 .y = rows_of(args.y),
                                 .factors = args.factors.as<float>(),
                                 .rows = data_of<std::int32_t>(args.rows)});
}

void run_clamp(Stream& stream, const ClampArgs& args) {
  clamp(handle_of(stream), {.n = args.y.size(0),
                            .dim = args.y.size(1),
                            .x = rows_of(args.x),
                            .y = rows_of(args.y),
                            .least = args.least.as<float>(),
                            .most = args.most.as<float>()});
}

// ---- Experts.

void run_route(Stream& stream, const RouteArgs& args) {
  CHECK(!args.given && args.rule.scores != RouterScores::sqrt_softplus, "of models that supports() refuses");
  CHECK(args.places.contiguous());
  route(handle_of(stream), {.n = args.logits.size(0),
                            .experts = args.logits.size(1),
                            .chosen = args.rule.chosen,
                            .renormalise = args.rule.renormalise,
                            .scores = args.rule.scores,
                            .scale = args.rule.scale,
                            .groups = args.rule.groups,
                            .groups_kept = args.rule.groups_kept,
                            .group_best = args.rule.group_best,
                            .jitter = args.rule.jitter,
                            .bias = data_of<float>(args.bias),
                            .scales = data_of<float>(args.scales),
                            .logits = rows_of(args.logits),
                            .weights = rows_of(args.weights),
                            .places = args.places.as<std::int32_t>(),
                            .tokens = args.tokens.as<std::int32_t>(),
                            .starts = args.starts.as<std::int32_t>()});
}

void run_grouped_matmul(Stream& stream, const GroupedMatmulArgs& args) {
  constexpr std::size_t kMost = 1024;
  CHECK(args.w.size() <= kMost, "{} experts", args.w.size());
  const std::byte* addresses[kMost];
  WeightRows w = numbers_of(*args.w[0]);
  for (std::size_t e = 0; e < args.w.size(); ++e) {
    const WeightRows& own = numbers_of(*args.w[e]);
    CHECK(own.format == w.format && own.group == w.group && own.stride == w.stride, "experts of two formats");
    addresses[e] = own.data;
  }
  w.data = nullptr;
  grouped_matmul(handle_of(stream), {.product = {.m = args.y.size(0),
                                                 .rows = args.w[0]->rows(),
                                                 .cols = args.w[0]->cols(),
                                                 .x = rows_of(args.x),
                                                 .w = w,
                                                 .bias = data_of<float>(args.bias),
                                                 .y = rows_of(args.y),
                                                 .x_rows = data_of<std::int32_t>(args.rows),
                                                 .hopper = cuda_stream(stream).hopper()},
                                     .w = addresses,
                                     .experts = std::ssize(args.w),
                                     .starts = args.starts.as<std::int32_t>()});
}

void run_combine(Stream& stream, const CombineArgs& args) {
  CHECK(args.places.contiguous());
  combine(handle_of(stream), {.n = args.out.size(0),
                              .dim = args.out.size(1),
                              .chosen = args.places.size(1),
                              .y = rows_of(args.y),
                              .weights = rows_of(args.weights),
                              .places = args.places.as<std::int32_t>(),
                              .shared = rows_of(args.shared),
                              .shared_gate = data_of<float>(args.shared_gate),
                              .out = rows_of(args.out)});
}

// ---- States.

void run_gate(Stream& stream, const GateArgs& args) {
  const View& weight = args.norm.weight;
  const std::int64_t columns = args.y.size(1);
  const std::int64_t dim = args.norm.kind == NormKind::none ? columns : weight.size(weight.rank - 1);
  gate(handle_of(stream), {.n = args.y.size(0),
                           .heads = columns / dim,
                           .dim = dim,
                           .x = rows_of(args.x),
                           .gate = rows_of(args.gate),
                           .y = rows_of(args.y),
                           .norm = params_of(args.norm),
                           .weight_stride = weight.rank == 2 ? dim : 0,
                           .gate_first = args.gate_first,
                           .activation = args.activation,
                           .gate_scale = args.gate_scale});
}

StateParams states_of(const StatePlan& plan, const View& state) {
  return {.sequences = plan.slots.size(0),
          .slots = plan.slots.as<std::int32_t>(),
          .starts = plan.starts.as<std::int32_t>(),
          .positions = plan.positions.as<std::int32_t>(),
          .copies = data_of<std::int32_t>(plan.copies),
          .data = state.as<float>(),
          .stride = state.stride[0]};
}

void run_causal_conv(Stream& stream, const ConvArgs& args) {
  causal_conv(handle_of(stream), {.inputs = args.x.size(1),
                                  .channels = args.y.size(1),
                                  .width = static_cast<int>(args.weight.size(1)),
                                  .x = rows_of(args.x),
                                  .y = rows_of(args.y),
                                  .x_gate = rows_of(args.x_gate),
                                  .y_gate = rows_of(args.y_gate),
                                  .weight = rows_of(args.weight),
                                  .bias = data_of<float>(args.bias),
                                  .silu = args.silu,
                                  .state = states_of(args.plan, args.state)});
}

void run_gated_delta(Stream& stream, const GatedDeltaArgs& args) {
  gated_delta(handle_of(stream), {.key_heads = args.key_heads,
                                  .value_heads = static_cast<int>(args.state.size(1)),
                                  .key_dim = static_cast<int>(args.state.size(2)),
                                  .value_dim = static_cast<int>(args.state.size(3)),
                                  .tiled = args.tiled,
                                  .qkv = rows_of(args.qkv),
                                  .out = rows_of(args.out),
                                  .ba = rows_of(args.ba),
                                  .a_log = args.a_log.as<float>(),
                                  .dt_bias = args.dt_bias.as<float>(),
                                  .by_row = args.dt_bias.elements() != args.state.size(1),
                                  .beta_scale = args.beta_scale,
                                  .state = states_of(args.plan, args.state)});
}

void run_wkv(Stream& stream, const WkvArgs& args) {
  wkv(handle_of(stream), {.heads = static_cast<int>(args.state.size(1)),
                          .head_dim = static_cast<int>(args.state.size(2)),
                          .r = rows_of(args.r),
                          .k = rows_of(args.k),
                          .v = rows_of(args.v),
                          .rate = rows_of(args.rate),
                          .gate = rows_of(args.gate),
                          .out = rows_of(args.out),
                          .mix = rows_of(args.mix),
                          .first = rows_of(args.first),
                          .decay = rows_of(args.decay),
                          .k_k = args.k_k.as<float>(),
                          .k_a = args.k_a.as<float>(),
                          .r_k = args.r_k.as<float>(),
                          .eps = args.eps,
                          .norm_weight = args.norm.weight.as<float>(),
                          .norm_bias = args.norm.bias.as<float>(),
                          .norm_eps = args.norm.eps,
                          .state = states_of(args.plan, args.state)});
}

TimeStepParams params_of(const TimeStep& rule) {
  return {.scale = rule.scale, .bias = data_of<float>(rule.bias), .least = rule.least, .most = rule.most};
}

void run_scan(Stream& stream, const ScanArgs& args) {
  scan(handle_of(stream), {.heads = static_cast<int>(args.state.size(1)),
                           .groups = args.groups,
                           .state_dim = static_cast<int>(args.state.size(2)),
                           .head_dim = static_cast<int>(args.state.size(3)),
                           .xbc = rows_of(args.xbc),
                           .dt = rows_of(args.dt),
                           .out = rows_of(args.out),
                           .time_step = params_of(args.time_step),
                           .a_log = args.a_log.as<float>(),
                           .d = args.d.as<float>(),
                           .state = states_of(args.plan, args.state)});
}

void run_channel_scan(Stream& stream, const ChannelScanArgs& args) {
  channel_scan(handle_of(stream), {.channels = args.state.size(2),
                                   .state_dim = static_cast<int>(args.state.size(1)),
                                   .x = rows_of(args.x),
                                   .bc = rows_of(args.bc),
                                   .dt = rows_of(args.dt),
                                   .out = rows_of(args.out),
                                   .time_step = params_of(args.time_step),
                                   .a_log = rows_of(args.a_log),
                                   .d = args.d.as<float>(),
                                   .state = states_of(args.plan, args.state)});
}

StreamsParams streams_of(const View& x, const View& router, const View& coefs) {
  return {.n = x.size(0),
          .streams = x.size(1),
          .dim = x.size(2),
          .x = x.as<float>(),
          .token_stride = x.stride[0],
          .stream_stride = x.stride[1],
          .router = rows_of(router),
          .coefs = rows_of(coefs)};
}

void run_predict_streams(Stream& stream, const PredictStreamsArgs& args) {
  predict_streams(handle_of(stream), streams_of(args.x, args.router, args.coefs));
}

void run_correct_streams(Stream& stream, const CorrectStreamsArgs& args) {
  correct_streams(handle_of(stream), {.streams = streams_of(args.x, args.router, args.coefs),
                                      .before = rows_of(args.before),
                                      .out = rows_of(args.out),
                                      .scale = data_of<float>(args.scale)});
}

void run_match_size(Stream& stream, const MatchSizeArgs& args) {
  match_size(handle_of(stream),
             {.n = args.x.size(0), .dim = args.x.size(1), .x = rows_of(args.x), .like = rows_of(args.like)});
}

void run_add_rows(Stream& stream, const AddRowsArgs& args) {
  add_rows(handle_of(stream), {.places = args.rows.size(0),
                               .dim = args.y.size(1),
                               .x = rows_of(args.x),
                               .rows = args.rows.as<std::int32_t>(),
                               .y = rows_of(args.y)});
}

void run_gather_rows(Stream& stream, const GatherRowsArgs& args) {
  gather_rows(handle_of(stream), {.n = args.out.size(0),
                                  .dim = args.out.size(1),
                                  .x = rows_of(args.x),
                                  .rows = args.rows.as<std::int32_t>(),
                                  .out = rows_of(args.out)});
}

void run_pool(Stream& stream, const PoolArgs& args) {
  pool(handle_of(stream), {.sequences = args.out.size(0),
                           .dim = args.out.size(1),
                           .x = rows_of(args.x),
                           .starts = args.starts.as<std::int32_t>(),
                           .pool = args.pool,
                           .out = rows_of(args.out)});
}

void run_put_sampled(Stream& stream, const PutSampledArgs& args) {
  put_sampled(handle_of(stream), {.n = args.tokens.size(0),
                                  .ids = args.ids.as<std::int32_t>(),
                                  .tokens = args.tokens.as<std::int32_t>(),
                                  .sampled = args.sampled.as<std::int32_t>(),
                                  .rows = args.rows.as<std::int32_t>()});
}

void run_scale_logits(Stream& stream, const ScaleLogitsArgs& args) {
  scale_logits(handle_of(stream), {.n = args.logits.size(0),
                                   .vocab = args.logits.size(1),
                                   .logits = rows_of(args.logits),
                                   .scale = args.scale,
                                   .soft_cap = args.soft_cap});
}

// ---- Sampling.

Result<> reserve_sampling(Device& device, std::int64_t rows, std::int64_t vocab) {
  return static_cast<CudaDevice&>(device).stream().reserve_scratch(static_cast<std::size_t>(rows * vocab) *
                                                                   sizeof(float));
}

void run_sample(Stream& stream, const SampleArgs& args) {
  const std::int64_t rows = args.logits.size(0), vocab = args.logits.size(1);
  const auto lists = [](const RowLists& of) {
    return of.starts ? ListParams{of.starts.as<std::int32_t>(), data_of<std::int32_t>(of.ids)} : ListParams{};
  };
  const bool changed = args.history.starts || args.bias.starts || args.mask_rows;
  void* raw = nullptr;
  if (changed && !args.processed)
    raw = cuda_stream(stream).scratch(static_cast<std::size_t>(rows * vocab) * sizeof(float));
  sample(handle_of(stream), {.rows = rows,
                             .vocab = vocab,
                             .logits = rows_of(args.logits),
                             .raw = static_cast<float*>(raw),
                             .temperature = args.temperature.as<float>(),
                             .top_p = args.top_p.as<float>(),
                             .min_p = args.min_p.as<float>(),
                             .top_k = args.top_k.as<std::int32_t>(),
                             .forced = args.forced.as<std::int32_t>(),
                             .random = args.random.as<std::int64_t>(),
                             .history = lists(args.history),
                             .bias = lists(args.bias),
                             .reported = lists(args.reported),
                             .history_counts = data_of<std::int32_t>(args.history_counts),
                             .repetition_penalty = data_of<float>(args.repetition_penalty),
                             .frequency_penalty = data_of<float>(args.frequency_penalty),
                             .presence_penalty = data_of<float>(args.presence_penalty),
                             .bias_values = data_of<float>(args.bias_values),
                             .mask_rows = data_of<std::int32_t>(args.mask_rows),
                             .mask = data_of<std::int32_t>(args.mask),
                             .mask_stride = args.mask ? args.mask.stride[0] : 0,
                             .top_counts = args.top_counts.as<std::int32_t>(),
                             .processed = args.processed,
                             .out_id = args.out_id.as<std::int32_t>(),
                             .out_rank = args.out_rank.as<std::int32_t>(),
                             .out_top_ids = data_of<std::int32_t>(args.out_top_ids),
                             .out_logprob = args.out_logprob.as<float>(),
                             .out_top_logprobs = data_of<float>(args.out_top_logprobs),
                             .top_stride = args.out_top_ids ? args.out_top_ids.stride[0] : 0});
}

// Copies of their own, beside the stream of the operators.
constexpr KvExchange kKvExchange{
    .layout = "rows",
    .joins = true,
    .export_block =
        [](const KvLayer& cache, std::int64_t block, std::span<std::byte> out) {
          runtime::copy_at_once(out.data(), cache.data + block * cache.stride_bytes, out.size());
        },
    .import_block =
        [](const KvLayer& cache, std::int64_t block, std::span<const std::byte> bytes) {
          runtime::copy_at_once(cache.data + block * cache.stride_bytes, bytes.data(), bytes.size());
        }};

// Of models that supports() refuses.
template <class Args>
void refused(Stream&, const Args&) {
  CHECK(false, "an operator that the CUDA backend does not have");
}

constexpr Ops kCudaOps{
    .activation = activation_of,
    .prepare = prepare,
    .kv_block_bytes = kv_block_bytes,
    .supports = supports,
    .make_attention_plan = make_attention_plan,
    .plan_attention = plan_attention,
    .reserve_sampling = reserve_sampling,
    .embed = run_embed,
    .add_norm = run_add_norm,
    .matmul = run_matmul,
    .activate = run_activate,
    .keep_tail = run_keep_tail,
    .scale_rows = run_scale_rows,
    .clamp = run_clamp,
    .route = run_route,
    .grouped_matmul = run_grouped_matmul,
    .combine = run_combine,
    .add_rows = run_add_rows,
    .angles = run_angles,
    .qkv_store = run_qkv_store,
    .head_matmul = run_head_matmul,
    .latent_store = run_latent_store,
    .choose_tokens = run_choose_tokens,
    .attention = run_attention,
    .turn_ends = refused<TurnEndsArgs>,
    .store_rows = refused<StoreRowsArgs>,
    .gate = run_gate,
    .causal_conv = run_causal_conv,
    .gated_delta = run_gated_delta,
    .scan = run_scan,
    .channel_scan = run_channel_scan,
    .wkv = run_wkv,
    .compress = refused<CompressArgs>,
    .collapse_streams = refused<CollapseStreamsArgs>,
    .expand_streams = refused<ExpandStreamsArgs>,
    .predict_streams = run_predict_streams,
    .correct_streams = run_correct_streams,
    .match_size = run_match_size,
    .gather_rows = run_gather_rows,
    .pool = run_pool,
    .put_sampled = run_put_sampled,
    .scale_logits = run_scale_logits,
    .sample = run_sample,
};

}  // namespace
}  // namespace cuda

const KvExchange* cuda_kv_exchange() { return &cuda::kKvExchange; }

Result<Backend> make_cuda_backend() {
  TRY(cuda::runtime::DeviceInfo info, cuda::runtime::open());
  auto stream = std::make_unique<cuda::CudaStream>(info);
  TRY_VOID(stream->reserve_products());
  auto device = std::make_unique<cuda::CudaDevice>(std::move(info), *stream);
  return Backend{
      .name = "cuda", .ops = cuda::kCudaOps, .device = std::move(device), .stream = std::move(stream)};
}

}  // namespace octavo
