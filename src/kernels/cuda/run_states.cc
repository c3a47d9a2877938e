#include "kernels/cuda/params.h"

namespace octavo::cuda {

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

static StateParams states_of(const StatePlan& plan, const View& state) {
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

static TimeStepParams params_of(const TimeStep& rule) {
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

static StreamsParams streams_of(const View& x, const View& router, const View& coefs) {
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

}  // namespace octavo::cuda
