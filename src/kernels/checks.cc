// Shapes and formats that every operator may rely on. A violation is a bug in the caller, not bad input.
// Contents are not looked at: they may lie on a device (host backends check indices, see host_device.h).
#include "kernels/host_device.h"
#include "kernels/ops.h"

namespace octavo {
namespace {

bool is_activation(DType type) { return type == DType::f32 || type == DType::bf16 || type == DType::f16; }

// The view is there, has this format and shape, and its rows are contiguous.
void expect(std::string_view what, const View& view, DType type, std::initializer_list<std::int64_t> shape) {
  CHECK(view || view.elements() == 0, "{} is missing", what);
  CHECK(view.dtype == type, "{} is {}, not {}", what, name(view.dtype), name(type));
  CHECK(view.rank == static_cast<int>(shape.size()), "{} has {} dimensions, not {}", what, view.rank,
        shape.size());
  int axis = 0;
  for (const std::int64_t size : shape) {
    CHECK(view.size(axis) == size, "{}: axis {} is {}, not {}", what, axis, view.size(axis), size);
    ++axis;
  }
  CHECK(rows_contiguous(view), "{} is not contiguous", what);
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

}  // namespace

template <>
void check(const EmbedArgs& args) {
  const std::int64_t n = args.out.size(0);
  expect("embed ids", args.ids, DType::i32, {n});
  expect("embed out", args.out, DType::f32, {n, args.table.cols()});
  if (args.position_table == nullptr) return;
  CHECK(args.position_table->cols() == args.table.cols());
  expect("embed positions", args.positions, DType::i32, {n});
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
}

template <>
void check(const QkvStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  const std::int64_t dim = spec.head_dim;
  CHECK(args.q_out.rank == 3);
  const std::int64_t n = args.q_out.size(0);
  expect_activation("qkv_store q_out", args.q_out, {n, args.q_heads, dim});
  expect("qkv_store qkv", args.qkv, args.q_out.dtype, {n, (args.q_heads + 2 * spec.kv_heads) * dim});
  expect("qkv_store positions", args.positions, DType::i32, {n});
  expect("qkv_store slots", args.slots, DType::i64, {n});

  const auto expect_head_norm = [&](std::string_view what, const Norm& norm, std::int64_t heads) {
    if (args.norm_whole_row) return expect_norm(what, norm, {heads * dim});
    if (norm.weight.rank == 2) return expect_norm(what, norm, {heads, dim});
    expect_norm(what, norm, {dim});
  };
  expect_head_norm("qkv_store q_norm", args.q_norm, args.q_heads);
  expect_head_norm("qkv_store k_norm", args.k_norm, spec.kv_heads);

  const int rotary = args.rope.rotary_dim;
  CHECK(rotary >= 0 && rotary % 2 == 0 && rotary <= dim, "rotary_dim {} of head_dim {}", rotary, dim);
  if (rotary > 0) {
    expect("rope cos", args.rope.cos, DType::f32, {args.rope.cos.size(0), rotary / 2});
    expect("rope sin", args.rope.sin, DType::f32, {args.rope.cos.size(0), rotary / 2});
  }
}

template <>
void check(const AttentionArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q.rank == 3);
  const std::int64_t n = args.q.size(0);
  const std::int64_t heads = args.q.size(1);
  CHECK(heads % spec.kv_heads == 0, "{} query heads, {} key heads", heads, spec.kv_heads);
  expect_activation("attention q", args.q, {n, heads, spec.head_dim});
  expect("attention out", args.out, args.q.dtype, {n, heads * spec.head_dim});
  CHECK(args.scale > 0 && args.window >= 0 && args.soft_cap >= 0, "scale {}, window {}, soft cap {}",
        args.scale, args.window, args.soft_cap);
}

template <>
void check(const GatherRowsArgs& args) {
  CHECK(args.x.rank == 2);
  const std::int64_t n = args.x.size(0);
  const std::int64_t dim = args.x.size(1);
  expect("gather_rows x", args.x, DType::f32, {n, dim});
  CHECK(args.out.rank == 2);
  const std::int64_t r = args.out.size(0);
  expect("gather_rows out", args.out, DType::f32, {r, dim});
  expect("gather_rows rows", args.rows, DType::i32, {r});
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
