#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

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
  expect("route places", args.pair_rows, DType::i32, {n, chosen});
  expect("route tokens", args.tokens, DType::i32, {n * chosen});
  expect("route starts", args.starts, DType::i32, {experts + 1});
}

template <>
void check(const GroupedMatmulArgs& args) {
  CHECK(!args.w.empty() && args.x.rank == 2 && args.y.rank == 2);
  const Weight& first = *args.w[0];
  const std::int64_t pair_rows = args.y.size(0), experts = std::ssize(args.w);
  for (const Weight* w : args.w)
    CHECK(w->rows() == first.rows() && w->cols() == first.cols() && w->activation() == first.activation(),
          "experts of {} x {} and {} x {}", first.rows(), first.cols(), w->rows(), w->cols());
  expect("grouped_matmul x", args.x, first.activation(), {args.x.size(0), first.cols()});
  expect("grouped_matmul y", args.y, first.activation(), {pair_rows, first.rows()});
  expect("grouped_matmul starts", args.starts, DType::i32, {experts + 1});
  if (args.rows) expect("grouped_matmul rows", args.rows, DType::i32, {pair_rows});
  CHECK(args.rows || args.x.size(0) == pair_rows, "{} rows for {} places", args.x.size(0), pair_rows);
  if (args.bias) expect("grouped_matmul bias", args.bias, DType::f32, {experts, first.rows()});
}

template <>
void check(const CombineArgs& args) {
  CHECK(args.out.rank == 2 && args.pair_rows.rank == 2);
  const std::int64_t n = args.out.size(0), dim = args.out.size(1), chosen = args.pair_rows.size(1);
  expect_activation("combine out", args.out, {n, dim});
  expect("combine y", args.y, args.out.dtype, {n * chosen, dim});
  expect("combine places", args.pair_rows, DType::i32, {n, chosen});
  if (args.weights) expect("combine weights", args.weights, DType::f32, {n, chosen});
  if (args.shared) expect("combine shared", args.shared, args.out.dtype, {n, dim});
  if (args.shared_gate) expect("combine shared_gate", args.shared_gate, DType::f32, {n, 1});
  CHECK(args.gate_activation == Activation::sigmoid || args.gate_activation == Activation::softplus);
}

template <>
void check(const AddRowsArgs& args) {
  CHECK(args.y.rank == 2);
  const std::int64_t n = args.y.size(0), dim = args.y.size(1), pair_rows = args.rows.size(0);
  expect_activation("add_rows y", args.y, {n, dim});
  expect_activation("add_rows x", args.x, {pair_rows, dim});
  CHECK(args.y.dtype == DType::f32 || args.y.dtype == args.x.dtype, "add_rows y is {}", name(args.y.dtype));
  expect("add_rows rows", args.rows, DType::i32, {pair_rows});
  if (!args.range) return;
  CHECK(args.range.size(0) >= 2, "a range of {} numbers", args.range.size(0));
  expect("add_rows range", args.range, DType::i32, {args.range.size(0)});
}

}  // namespace octavo
