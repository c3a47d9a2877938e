#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

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
void check(const OwnIdsArgs& args) {
  expect("own_ids ids", args.ids, DType::i32, {args.own.size(0)});
  expect("own_ids own", args.own, DType::i32, {args.own.size(0)});
}

template <>
void check(const KeepOwnRowsArgs& args) {
  CHECK(args.x.rank == 2);
  expect("keep_own_rows x", args.x, DType::f32, {args.x.size(0), args.x.size(1)});
  expect("keep_own_rows ids", args.ids, DType::i32, {args.x.size(0)});
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
void check(const SumSquaresArgs& args) {
  CHECK(args.x.rank == 2);
  expect_activation("sum_squares x", args.x, {args.x.size(0), args.x.size(1)});
  expect("sum_squares sums", args.sums, DType::f32, {args.x.size(0), 1});
}

template <>
void check(const NormBySquaresArgs& args) {
  CHECK(args.x.rank == 2 && args.count > 0);
  expect_activation("norm_by_squares x", args.x, {args.x.size(0), args.x.size(1)});
  expect("norm_by_squares sums", args.sums, DType::f32, {args.x.size(0), 1});
  expect("norm_by_squares weight", args.weight, DType::f32, {args.x.size(1)});
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
void check(const SoftmaxArgs& args) {
  CHECK(args.x.rank == 2 && args.y.rank == 2 && args.x.size(1) > 0 && args.y.size(1) >= args.x.size(1));
  expect_activation("softmax y", args.y, {args.x.size(0), args.y.size(1)});
  expect("softmax x", args.x, args.y.dtype, {args.x.size(0), args.x.size(1)});
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
