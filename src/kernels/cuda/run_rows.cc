#include "kernels/cuda/params.h"

namespace octavo::cuda {

void run_embed(Stream& stream, const EmbedArgs& args) {
  const WeightRows positions =
      args.position_table != nullptr ? numbers_of(*args.position_table) : WeightRows{};
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

void run_route(Stream& stream, const RouteArgs& args) {
  CHECK(!args.given && args.rule.scores != RouterScores::sqrt_softplus,
        "a form of route that this backend lacks");
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

void run_add_rows(Stream& stream, const AddRowsArgs& args) {
  add_rows(handle_of(stream), {.places = args.rows.size(0),
                               .dim = args.y.size(1),
                               .x = rows_of(args.x),
                               .rows = args.rows.as<std::int32_t>(),
                               .y = rows_of(args.y)});
}

void run_sample(Stream& stream, const SampleArgs& args) {
  const std::int64_t rows = args.logits.size(0), vocab = args.logits.size(1);
  const auto lists = [](const RowLists& of) {
    return of.starts ? ListParams{of.starts.as<std::int32_t>(), data_of<std::int32_t>(of.ids)} : ListParams{};
  };
  const bool changed = args.history.starts || args.bias.starts || args.mask;
  void* raw = nullptr;
  if (changed && !args.processed)
    raw = cuda_stream(stream).scratch(static_cast<std::size_t>(rows * vocab) * sizeof(float));
  sample(handle_of(stream), {.rows = rows,
                             .vocab = vocab,
                             .logits = rows_of(args.logits),
                             .raw = static_cast<float*>(raw),
                             .rules = args.draw_rules(),
                             .history = lists(args.history),
                             .bias = lists(args.bias),
                             .reported = lists(args.reported),
                             .history_counts = data_of<std::int32_t>(args.history_counts),
                             .bias_values = data_of<float>(args.bias_values),
                             .mask = data_of<std::int32_t>(args.mask),
                             .mask_stride = args.mask ? args.mask.stride[0] : 0,
                             .processed = args.processed,
                             .out_id = args.out_id.as<std::int32_t>(),
                             .out_rank = args.out_rank.as<std::int32_t>(),
                             .out_top_ids = data_of<std::int32_t>(args.out_top_ids),
                             .out_logprob = args.out_logprob.as<float>(),
                             .out_top_logprobs = data_of<float>(args.out_top_logprobs),
                             .top_stride = args.out_top_ids ? args.out_top_ids.stride[0] : 0});
}

}  // namespace octavo::cuda
