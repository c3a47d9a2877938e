// Shapes and formats that every operator may rely on. A violation is a bug in the caller, not bad input.
// Contents are not looked at: they may lie on a device (host backends check indices, see host_device.h).
#include "kernels/host_device.h"
#include "kernels/ops.h"

namespace octavo {
namespace {

bool is_activation(DType type) { return type == DType::f32 || type == DType::bf16 || type == DType::f16; }

// The view is there, has this format and shape, and its rows are contiguous or, if not these, its heads.
void expect(std::string_view what, const View& view, DType type, std::initializer_list<std::int64_t> shape,
            bool whole_rows = true) {
  CHECK(view || view.elements() == 0, "{} is missing", what);
  CHECK(view.dtype == type, "{} is {}, not {}", what, name(view.dtype), name(type));
  CHECK(view.rank == static_cast<int>(shape.size()), "{} has {} dimensions, not {}", what, view.rank,
        shape.size());
  int axis = 0;
  for (const std::int64_t size : shape) {
    CHECK(view.size(axis) == size, "{}: axis {} is {}, not {}", what, axis, view.size(axis), size);
    ++axis;
  }
  CHECK(whole_rows ? rows_contiguous(view) : view.stride[2] == 1, "{} is not contiguous", what);
}

void expect_activation(std::string_view what, const View& view, std::initializer_list<std::int64_t> shape) {
  CHECK(is_activation(view.dtype), "{} is {}", what, name(view.dtype));
  expect(what, view, view.dtype, shape);
}

void expect_norm(std::string_view what, const Norm& norm, std::initializer_list<std::int64_t> shape) {
  if (norm.kind == NormKind::none) return;
  expect(what, norm.weight, DType::f32, shape);
  if (norm.bias) expect(what, norm.bias, DType::f32, shape);
}

void expect_plan(const StatePlan& plan, std::int64_t n) {
  const std::int64_t sequences = plan.slots.size(0);
  expect("state slots", plan.slots, DType::i32, {sequences});
  expect("state starts", plan.starts, DType::i32, {sequences + 1});
  expect("state positions", plan.positions, DType::i32, {n});
  if (plan.copies) expect("state copies", plan.copies, DType::i32, {n});
}

}  // namespace

template <>
void check(const EmbedArgs& args) {
  const std::int64_t n = args.out.size(0);
  expect("embed ids", args.ids, DType::i32, {n});
  expect("embed out", args.out, DType::f32, {n, args.table.cols()});
  const auto expect_table = [&](std::string_view what, const Weight* table, const View& rows) {
    if (table == nullptr) return;
    CHECK(table->cols() == args.table.cols(), "{}: {} columns", what, table->cols());
    expect(what, rows, DType::i32, {n});
  };
  expect_table("embed positions", args.position_table, args.positions);
  expect_table("embed types", args.type_table, args.types);
}

template <>
void check(const AddNormArgs& args) {
  CHECK(args.residual.rank == 2);
  const std::int64_t n = args.residual.size(0);
  const std::int64_t dim = args.residual.size(1);
  expect("add_norm residual", args.residual, DType::f32, {n, dim});
  if (args.delta) expect_activation("add_norm delta", args.delta, {n, dim});
  if (args.out) expect_activation("add_norm out", args.out, {n, dim});
  expect_norm("add_norm delta_norm", args.delta_norm, {dim});
  expect_norm("add_norm norm", args.norm, {dim});
  if (args.residual_scale) expect("add_norm residual_scale", args.residual_scale, DType::f32, {1});
}

template <>
void check(const MatmulArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t m = args.y.size(0);
  expect("matmul x", args.x, args.w.activation(), {m, args.w.cols()});
  expect_activation("matmul y", args.y, {m, args.w.rows()});
  CHECK(args.y.dtype == DType::f32 || args.y.dtype == args.w.activation(), "matmul y is {}",
        name(args.y.dtype));
  if (args.bias) expect("matmul bias", args.bias, DType::f32, {args.w.rows()});
}

template <>
void check(const ActivateArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t n = args.y.size(0);
  const std::int64_t h = args.y.size(1);
  expect_activation("activate y", args.y, {n, h});
  expect("activate x", args.x, args.y.dtype, {n, args.gated ? 2 * h : h});
  CHECK(args.activation != Activation::swigluoai || (args.gated && args.limit > 0), "swigluoai: limit {}",
        args.limit);
  if (args.activation != Activation::xielu) return;
  CHECK(!args.gated, "xielu with a gate");
  expect("xielu slopes", args.slopes, DType::f32, {2});
}

template <>
void check(const KeepTailArgs& args) {
  CHECK(args.x.rank == 2);
  expect_activation("keep_tail x", args.x, {args.x.size(0), args.x.size(1)});
}

template <>
void check(const ScaleRowsArgs& args) {
  CHECK(args.y.rank == 2 && args.factors.rank == 1);
  const std::int64_t n = args.y.size(0), dim = args.y.size(1);
  expect_activation("scale_rows y", args.y, {n, dim});
  expect("scale_rows x", args.x, args.y.dtype, {n, dim});
  expect("scale_rows factors", args.factors, DType::f32, {args.rows ? args.factors.size(0) : n});
  if (args.rows) expect("scale_rows rows", args.rows, DType::i32, {n});
}

template <>
void check(const ClampArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t n = args.y.size(0), dim = args.y.size(1);
  expect_activation("clamp y", args.y, {n, dim});
  expect("clamp x", args.x, args.y.dtype, {n, dim});
  expect("clamp least", args.least, DType::f32, {dim});
  expect("clamp most", args.most, DType::f32, {dim});
}

template <>
void check(const RouteArgs& args) {
  CHECK(args.logits.rank == 2);
  const std::int64_t n = args.logits.size(0), experts = args.logits.size(1), chosen = args.rule.chosen;
  CHECK(chosen > 0 && chosen <= experts && experts <= kMaxExperts, "{} of {} experts", chosen, experts);
  const RouterRule& rule = args.rule;
  CHECK(rule.groups > 0 && experts % rule.groups == 0 && rule.groups_kept > 0 &&
            rule.groups_kept <= rule.groups && chosen <= rule.groups_kept * (experts / rule.groups),
        "{} of {} groups, {} of {} experts", rule.groups_kept, rule.groups, chosen, experts);
  CHECK(rule.group_best == 1 || rule.group_best == 2, "the best {} of a group", rule.group_best);
  CHECK(rule.scores != RouterScores::sparsemixer || (!args.bias && rule.groups == 1 && !rule.renormalise),
        "sparsemixer with a bias, groups or renormalised weights");
  if (args.bias) expect("route bias", args.bias, DType::f32, {experts});
  if (args.scales) expect("route scales", args.scales, DType::f32, {experts});
  if (args.given) {
    expect("route given", args.given, DType::f32, {n, chosen});
    CHECK(rule.scores != RouterScores::sparsemixer, "sparsemixer of given experts");
  }
  expect("route logits", args.logits, DType::f32, {n, experts});
  expect("route weights", args.weights, DType::f32, {n, chosen});
  expect("route places", args.places, DType::i32, {n, chosen});
  expect("route tokens", args.tokens, DType::i32, {n * chosen});
  expect("route starts", args.starts, DType::i32, {experts + 1});
}

template <>
void check(const GroupedMatmulArgs& args) {
  CHECK(!args.w.empty() && args.x.rank == 2 && args.y.rank == 2);
  const Weight& first = *args.w[0];
  const std::int64_t places = args.y.size(0), experts = std::ssize(args.w);
  for (const Weight* w : args.w)
    CHECK(w->rows() == first.rows() && w->cols() == first.cols() && w->activation() == first.activation(),
          "experts of {} x {} and {} x {}", first.rows(), first.cols(), w->rows(), w->cols());
  expect("grouped_matmul x", args.x, first.activation(), {args.x.size(0), first.cols()});
  expect("grouped_matmul y", args.y, first.activation(), {places, first.rows()});
  expect("grouped_matmul starts", args.starts, DType::i32, {experts + 1});
  if (args.rows) expect("grouped_matmul rows", args.rows, DType::i32, {places});
  CHECK(args.rows || args.x.size(0) == places, "{} rows for {} places", args.x.size(0), places);
  if (args.bias) expect("grouped_matmul bias", args.bias, DType::f32, {experts, first.rows()});
}

template <>
void check(const CombineArgs& args) {
  CHECK(args.out.rank == 2 && args.places.rank == 2);
  const std::int64_t n = args.out.size(0), dim = args.out.size(1), chosen = args.places.size(1);
  expect_activation("combine out", args.out, {n, dim});
  expect("combine y", args.y, args.out.dtype, {n * chosen, dim});
  expect("combine places", args.places, DType::i32, {n, chosen});
  if (args.weights) expect("combine weights", args.weights, DType::f32, {n, chosen});
  if (args.shared) expect("combine shared", args.shared, args.out.dtype, {n, dim});
  if (args.shared_gate) expect("combine shared_gate", args.shared_gate, DType::f32, {n, 1});
}

template <>
void check(const AddRowsArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t n = args.y.size(0), dim = args.y.size(1), places = args.rows.size(0);
  expect_activation("add_rows y", args.y, {n, dim});
  expect_activation("add_rows x", args.x, {places, dim});
  CHECK(args.y.dtype == DType::f32 || args.y.dtype == args.x.dtype, "add_rows y is {}", name(args.y.dtype));
  expect("add_rows rows", args.rows, DType::i32, {places});
}

template <>
void check(const AnglesArgs& args) {
  const std::int64_t n = args.cos.size(0), pairs = args.cos.size(1);
  expect("angles positions", args.positions, DType::i32, {n});
  expect("angles frequencies", args.frequencies, DType::f32, {pairs});
  expect("angles cos", args.cos, DType::f32, {n, pairs});
  expect("angles sin", args.sin, DType::f32, {n, pairs});
}

template <>
void check(const QkvStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  const std::int64_t dim = spec.head_dim;
  CHECK(args.q_out.rank == 3);
  const std::int64_t n = args.q_out.size(0);
  expect_activation("qkv_store q_out", args.q_out, {n, args.q_heads, dim});
  const std::int64_t rows = args.q_heads + (args.stores ? 2 * spec.kv_heads : 0);
  expect("qkv_store qkv", args.qkv, args.q_out.dtype, {n, rows * dim});
  expect("qkv_store slots", args.slots, DType::i64, {n});

  const auto expect_head_norm = [&](std::string_view what, const Norm& norm, std::int64_t heads) {
    if (args.norm_whole_row) return expect_norm(what, norm, {heads * dim});
    if (norm.weight.rank == 2) return expect_norm(what, norm, {heads, dim});
    expect_norm(what, norm, {dim});
  };
  expect_head_norm("qkv_store q_norm", args.q_norm, args.q_heads);
  if (args.stores) expect_head_norm("qkv_store k_norm", args.k_norm, spec.kv_heads);
  expect_norm("qkv_store v_norm", args.v_norm, {dim});
  if (args.norm_turned)
    CHECK(!args.norm_whole_row && args.q_norm.kind == NormKind::rms && args.k_norm.kind == NormKind::rms &&
              !args.q_norm.bias && !args.k_norm.bias,
          "another norm behind the rotation than rms of each head");

  const int rotary = args.rope.rotary_dim;
  CHECK(rotary >= 0 && rotary % 2 == 0 && rotary <= dim, "rotary_dim {} of head_dim {}", rotary, dim);
  if (rotary > 0) {
    expect("rope cos", args.rope.cos, DType::f32, {n, rotary / 2});
    expect("rope sin", args.rope.sin, DType::f32, {n, rotary / 2});
  }
}

template <>
void check(const HeadMatmulArgs& args) {
  CHECK(args.y.rank == 3);
  const std::int64_t m = args.y.size(0), heads = args.y.size(1), rows = args.y.size(2);
  CHECK(heads * rows == args.w.rows() && rows % kHeadRows == 0 && args.w.cols() <= kMaxLatentDim,
        "{} heads of a matrix {} x {}", heads, args.w.rows(), args.w.cols());
  expect("head_matmul x", args.x, args.w.activation(), {m, heads, args.w.cols()}, false);
  expect("head_matmul y", args.y, args.w.activation(), {m, heads, rows}, false);
}

template <>
void check(const LatentStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q_out.rank == 3 && args.q.rank == 3);
  const std::int64_t n = args.q_out.size(0), heads = args.q_out.size(1);
  const int rotary = spec.score_dim() - spec.values_in_keys;
  CHECK(spec.kv_heads == 1 && spec.values_in_keys > 0 && rotary > 0, "{} heads, {} of {} are values",
        spec.kv_heads, spec.values_in_keys, spec.score_dim());
  expect("latent_store kv", args.kv, DType::f32, {n, spec.score_dim()});
  expect_activation("latent_store q_out", args.q_out, {n, heads, spec.score_dim()});
  if (spec.index_dim > 0)
    expect("latent_store index_keys", args.index_keys, args.q_out.dtype, {n, spec.index_dim});
  CHECK(args.q.size(2) >= rotary, "{} numbers of a head of q, {} turn", args.q.size(2), rotary);
  expect("latent_store q", args.q, args.q_out.dtype, {n, heads, args.q.size(2)}, false);
  expect("latent_store slots", args.slots, DType::i64, {n});
  expect_norm("latent_store norm", args.norm, {spec.values_in_keys});
  CHECK(args.rope.rotary_dim == rotary, "rotary_dim {} of {}", args.rope.rotary_dim, rotary);
  expect("rope cos", args.rope.cos, DType::f32, {n, rotary / 2});
  expect("rope sin", args.rope.sin, DType::f32, {n, rotary / 2});
}

template <>
void check(const TurnEndsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), dim = args.x.size(2), pairs = args.frequencies.size(0);
  expect_activation("turn_ends x", args.x, {n, args.x.size(1), dim});
  expect_norm("turn_ends norm", args.norm, {dim});
  expect("turn_ends positions", args.positions, DType::i32, {n});
  expect("turn_ends frequencies", args.frequencies, DType::f32, {pairs});
  CHECK(2 * pairs <= dim, "{} pairs of heads of {}", pairs, dim);
}

template <>
void check(const StoreRowsArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.x.rank == 2 && spec.shared_rows());
  const std::int64_t n = args.x.size(0), dim = args.x.size(1), pairs = args.frequencies.size(0);
  expect("store_rows x", args.x, DType::f32, {n, dim});
  expect_norm("store_rows norm", args.norm, {dim});
  expect("store_rows positions", args.positions, DType::i32, {n});
  expect("store_rows frequencies", args.frequencies, DType::f32, {pairs});
  expect("store_rows slots", args.slots, DType::i64, {n});
  CHECK(2 * pairs <= dim && args.first >= 0 && args.first + dim <= spec.head_dim, "{} pairs of {} from {} on of {}",
        pairs, dim, args.first, spec.head_dim);
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

template <>
void check(const CollapseStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1), dim = args.x.size(2);
  const bool mixes = static_cast<bool>(args.mix);
  const std::int64_t rows = mixes ? streams * (2 + streams) : streams;
  CHECK(streams > 0 && streams <= kMaxStreams, "{} streams", streams);
  CHECK(mixes == static_cast<bool>(args.post) && (!mixes || args.iterations > 0));
  expect("collapse_streams x", args.x, DType::f32, {n, streams, dim});
  expect("collapse_streams matrix", args.matrix, DType::f32, {rows, streams * dim});
  expect("collapse_streams base", args.base, DType::f32, {rows});
  expect("collapse_streams scale", args.scale, DType::f32, {mixes ? 3 : 1});
  expect("collapse_streams out", args.out, DType::f32, {n, dim});
  if (!mixes) return;
  expect("collapse_streams post", args.post, DType::f32, {n, streams});
  expect("collapse_streams mix", args.mix, DType::f32, {n, streams * streams});
}

template <>
void check(const ExpandStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1), dim = args.x.size(2);
  CHECK(streams > 0 && streams <= kMaxStreams, "{} streams", streams);
  expect("expand_streams x", args.x, DType::f32, {n, streams, dim});
  expect_activation("expand_streams delta", args.delta, {n, dim});
  expect("expand_streams post", args.post, DType::f32, {n, streams});
  expect("expand_streams mix", args.mix, DType::f32, {n, streams * streams});
}

template <>
void check(const ChooseTokensArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q.rank == 3 && args.chosen.rank == 2);
  const std::int64_t n = args.q.size(0), heads = args.q.size(1);
  CHECK(spec.kv_heads == 1 && spec.index_dim > 0 && heads <= kMaxIndexHeads,
        "{} heads of {} for {} key heads", heads, spec.index_dim, spec.kv_heads);
  expect_activation("choose_tokens q", args.q, {n, heads, spec.index_dim});
  expect("choose_tokens weights", args.weights, DType::f32, {n, heads});
  expect("choose_tokens chosen", args.chosen, DType::i32, {n, args.chosen.size(1)});
}

template <>
void check(const AttentionArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q.rank == 3);
  const std::int64_t n = args.q.size(0);
  const std::int64_t heads = args.q.size(1);
  CHECK(heads % spec.kv_heads == 0, "{} query heads, {} key heads", heads, spec.kv_heads);
  expect_activation("attention q", args.q, {n, heads, spec.score_dim()});
  if (args.chosen) {
    expect("attention chosen", args.chosen, DType::i32, {n, args.chosen.size(1)});
    CHECK(args.causal, "chosen tokens where a query sees those behind it");
  }
  expect("attention out", args.out, args.q.dtype, {n, heads * spec.value_dim()});
  if (args.sinks) expect("attention sinks", args.sinks, DType::f32, {heads});
  if (args.entry_plan != nullptr)
    CHECK(spec.shared_rows() && args.entries.spec.shared_rows() &&
              args.entries.spec.score_dim() == spec.score_dim() && args.entries.spec.dtype == spec.dtype,
          "entries of {} beside rows of {}", args.entries.spec.score_dim(), spec.score_dim());
  if (spec.shared_rows()) CHECK(args.causal && args.chunk == 0 && args.soft_cap == 0 && !args.slopes);
  CHECK(args.scale > 0 && args.window >= 0 && args.soft_cap >= 0, "scale {}, window {}, soft cap {}",
        args.scale, args.window, args.soft_cap);
  CHECK(args.chunk == 0 || (args.causal && args.window == args.chunk), "chunks of {}, a window of {}",
        args.chunk, args.window);
  if (args.distance_bias) {
    expect("attention distance bias", args.distance_bias, DType::f32, {heads, args.distance_bias.size(1)});
    CHECK(args.distance_bias.size(1) % 2 == 1 && args.soft_cap == 0, "{} biases, a soft cap of {}",
          args.distance_bias.size(1), args.soft_cap);
  }
  if (!args.slopes) return;
  expect("attention slopes", args.slopes, DType::f32, {heads});
  CHECK(args.soft_cap == 0, "slopes and a soft cap");
}

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
  expect("causal_conv state", args.state, DType::f32, {args.state.size(0), width - 1, inputs});
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
void check(const PredictStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1);
  CHECK(streams <= kMaxStreams, "{} streams", streams);
  expect("predict_streams x", args.x, DType::f32, {n, streams, args.x.size(2)});
  expect("predict_streams router", args.router, DType::f32, {n, streams});
  expect("predict_streams coefs", args.coefs, DType::f32, {streams * streams, streams});
}

template <>
void check(const CorrectStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1), dim = args.x.size(2);
  CHECK(streams <= kMaxStreams, "{} streams", streams);
  expect("correct_streams x", args.x, DType::f32, {n, streams, dim});
  expect("correct_streams before", args.before, DType::f32, {n, dim});
  expect("correct_streams router", args.router, DType::f32, {n, streams});
  expect("correct_streams coefs", args.coefs, DType::f32, {streams, streams});
  if (args.scale) expect("correct_streams scale", args.scale, DType::f32, {dim});
  expect_activation("correct_streams out", args.out, {n, dim});
}

template <>
void check(const MatchSizeArgs& args) {
  CHECK(args.x.rank == 2);
  const std::int64_t n = args.x.size(0), dim = args.x.size(1);
  expect("match_size x", args.x, DType::f32, {n, dim});
  expect("match_size like", args.like, DType::f32, {n, dim});
}

template <>
void check(const GatherRowsArgs& args) {
  CHECK(args.x.rank == 2);
  const std::int64_t n = args.x.size(0);
  const std::int64_t dim = args.x.size(1);
  expect_activation("gather_rows x", args.x, {n, dim});
  CHECK(args.out.rank == 2);
  const std::int64_t r = args.out.size(0);
  expect("gather_rows out", args.out, args.x.dtype, {r, dim});
  expect("gather_rows rows", args.rows, DType::i32, {r});
}

template <>
void check(const PoolArgs& args) {
  CHECK(args.x.rank == 2 && args.out.rank == 2);
  const std::int64_t dim = args.x.size(1), sequences = args.out.size(0);
  expect("pool x", args.x, DType::f32, {args.x.size(0), dim});
  expect("pool starts", args.starts, DType::i32, {sequences + 1});
  expect("pool out", args.out, DType::f32, {sequences, dim});
}

template <>
void check(const PutSampledArgs& args) {
  const std::int64_t p = args.tokens.size(0);
  expect("put_sampled ids", args.ids, DType::i32, {args.ids.size(0)});
  expect("put_sampled tokens", args.tokens, DType::i32, {p});
  expect("put_sampled sampled", args.sampled, DType::i32, {args.sampled.size(0)});
  expect("put_sampled rows", args.rows, DType::i32, {p});
}

template <>
void check(const ScaleLogitsArgs& args) {
  CHECK(args.logits.rank == 2);
  expect("logits", args.logits, DType::f32, {args.logits.size(0), args.logits.size(1)});
}

}  // namespace octavo
