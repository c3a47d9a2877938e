#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

template <>
void check(const GateArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t n = args.y.size(0), columns = args.y.size(1);
  expect_activation("gate y", args.y, {n, columns});
  expect("gate x", args.x, args.y.dtype, {n, columns});
  expect("gate gate", args.gate, args.y.dtype, {n, columns});
  CHECK(args.activation != Activation::swigluoai);
  if (args.norm.kind == NormKind::none) return;
  const View& weight = args.norm.weight;
  const std::int64_t dim = weight.size(weight.rank - 1);
  CHECK(dim > 0 && dim <= kMaxGateDim && columns % dim == 0, "heads of {} in {} columns", dim, columns);
  if (weight.rank == 2) {
    expect("gate norm", weight, DType::f32, {columns / dim, dim});
  } else {
    expect("gate norm", weight, DType::f32, {dim});
  }
  CHECK(!args.norm.bias);
}

template <>
void check(const ConvArgs& args) {
  CHECK(args.y.rank == 2 && args.weight.rank == 2 && args.state.rank == 3);
  const std::int64_t n = args.y.size(0), channels = args.y.size(1), width = args.weight.size(1);
  CHECK(width >= 2 && width <= kMaxConvWidth, "a convolution {} wide", width);
  const std::int64_t inputs = args.x.size(1);
  CHECK(inputs > 0 && channels % inputs == 0, "{} channels of {}", channels, inputs);
  expect_activation("causal_conv y", args.y, {n, channels});
  expect("causal_conv x", args.x, args.y.dtype, {n, inputs});
  if (args.x_gate) expect("causal_conv x_gate", args.x_gate, args.y.dtype, {n, inputs});
  if (args.y_gate) expect("causal_conv y_gate", args.y_gate, args.y.dtype, {n, channels});
  if (args.bias) expect("causal_conv bias", args.bias, DType::f32, {channels});
  expect("causal_conv weight", args.weight, DType::f32, {channels, width});
  CHECK(args.ahead >= 0 && args.ahead < width, "a convolution {} wide, {} ahead", width, args.ahead);
  expect("causal_conv state", args.state, DType::f32, {args.state.size(0), width - 1, inputs});
  expect_plan(args.plan, n);
}

template <>
void check(const GatedDeltaArgs& args) {
  CHECK(args.out.rank == 2 && args.state.rank == 4);
  const std::int64_t n = args.out.size(0), heads = args.state.size(1);
  const std::int64_t key_dim = args.state.size(2), value_dim = args.state.size(3);
  CHECK(args.key_heads > 0 && heads % args.key_heads == 0, "{} value heads, {} key heads", heads,
        args.key_heads);
  CHECK(key_dim <= kMaxStateDim && value_dim <= kMaxStateDim, "a state of {} x {}", key_dim, value_dim);
  expect_activation("gated_delta out", args.out, {n, heads * value_dim});
  expect("gated_delta qkv", args.qkv, args.out.dtype, {n, 2 * args.key_heads * key_dim + heads * value_dim});
  const std::int64_t rates = args.dt_bias.elements() == heads ? heads : heads * key_dim;
  expect("gated_delta ba", args.ba, DType::f32, {n, heads + rates});
  expect("gated_delta a_log", args.a_log, DType::f32, {heads});
  expect("gated_delta dt_bias", args.dt_bias, DType::f32, {rates});
  expect("gated_delta state", args.state, DType::f32, {args.state.size(0), heads, key_dim, value_dim});
  expect_plan(args.plan, n);
}

template <>
void check(const ScanArgs& args) {
  CHECK(args.out.rank == 2 && args.state.rank == 4);
  const std::int64_t n = args.out.size(0), heads = args.state.size(1);
  const std::int64_t state_dim = args.state.size(2), head_dim = args.state.size(3);
  CHECK(args.groups > 0 && heads % args.groups == 0, "{} heads, {} groups", heads, args.groups);
  CHECK(state_dim <= kMaxStateDim && head_dim <= kMaxStateDim, "a state of {} x {}", state_dim, head_dim);
  expect_activation("scan out", args.out, {n, heads * head_dim});
  expect("scan xbc", args.xbc, args.out.dtype, {n, heads * head_dim + 2 * args.groups * state_dim});
  if (args.dt) {
    expect("scan dt", args.dt, args.out.dtype, {n, heads});
    expect("scan time_step", args.time_step.bias, DType::f32, {heads});
  }
  expect("scan a_log", args.a_log, DType::f32, {heads});
  expect("scan d", args.d, DType::f32, {heads});
  expect("scan state", args.state, DType::f32, {args.state.size(0), heads, state_dim, head_dim});
  expect_plan(args.plan, n);
}

template <>
void check(const ChannelScanArgs& args) {
  CHECK(args.out.rank == 2 && args.state.rank == 3);
  const std::int64_t n = args.out.size(0), channels = args.out.size(1), state_dim = args.state.size(1);
  CHECK(state_dim <= kMaxStateDim, "a state of {}", state_dim);
  expect_activation("channel_scan out", args.out, {n, channels});
  expect("channel_scan x", args.x, args.out.dtype, {n, channels});
  expect("channel_scan bc", args.bc, args.out.dtype, {n, 2 * state_dim});
  expect("channel_scan dt", args.dt, args.out.dtype, {n, channels});
  expect("channel_scan time_step", args.time_step.bias, DType::f32, {channels});
  expect("channel_scan a_log", args.a_log, DType::f32, {channels, state_dim});
  expect("channel_scan d", args.d, DType::f32, {channels});
  expect("channel_scan state", args.state, DType::f32, {args.state.size(0), state_dim, channels});
  expect_plan(args.plan, n);
}

template <>
void check(const WkvArgs& args) {
  CHECK(args.out.rank == 2 && args.state.rank == 4);
  const std::int64_t n = args.out.size(0), heads = args.state.size(1), dim = args.state.size(2);
  const std::int64_t inner = heads * dim;
  CHECK(dim <= kMaxStateDim, "heads of {}", dim);
  expect_activation("wkv out", args.out, {n, inner});
  for (const View* x : {&args.r, &args.k, &args.v, &args.rate, &args.gate})
    expect("wkv r, k, v, rate, gate", *x, args.out.dtype, {n, inner});
  CHECK(bool(args.mix) == bool(args.first));
  for (const View* x : {&args.mix, &args.first})
    if (*x) expect("wkv mix, first", *x, args.out.dtype, {n, inner});
  expect("wkv decay", args.decay, DType::f32, {n, inner});
  CHECK(args.norm.kind == NormKind::layer);
  for (const View* x : {&args.k_k, &args.k_a, &args.r_k, &args.norm.weight, &args.norm.bias})
    expect("wkv vectors", *x, DType::f32, {inner});
  expect("wkv state", args.state, DType::f32, {args.state.size(0), heads, dim, dim});
  expect_plan(args.plan, n);
}

template <>
void check(const CompressArgs& args) {
  CHECK(args.means.rank == 2 && args.bias.rank == 2 && args.state.rank == 4);
  const std::int64_t n = args.means.size(0), dim = args.means.size(1), sets = args.state.size(1);
  CHECK(sets == 1 || sets == 2, "{} sets of columns", sets);
  expect("compress values", args.values, DType::f32, {n, sets * dim});
  expect("compress gates", args.gates, DType::f32, {n, sets * dim});
  expect("compress bias", args.bias, DType::f32, {args.bias.size(0), sets * dim});
  expect("compress state", args.state, DType::f32, {args.state.size(0), sets, 3, dim});
  expect("compress means", args.means, DType::f32, {n, dim});
  expect_plan(args.plan, n);
}

}  // namespace octavo
