#include "kernels/operators/mixes.h"

#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

template <>
void check(const MixSourcesArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t tokens = args.x.size(0), sources = args.x.size(1), dim = args.x.size(2);
  CHECK(sources > 0 && sources + (args.last ? 1 : 0) <= kMaxSources, "{} sources", sources);
  expect("mix_sources x", args.x, DType::f32, {tokens, sources, dim}, false);
  if (args.last) expect("mix_sources last", args.last, DType::f32, {tokens, dim});
  expect("mix_sources query", args.query, DType::f32, {dim});
  expect("mix_sources out", args.out, DType::f32, {tokens, dim});
}

template <>
void check(const MixHeadsArgs& args) {
  CHECK(args.q.rank == 3);
  const std::int64_t tokens = args.q.size(0), heads = args.q.size(1), dim = args.q.size(2);
  expect_activation("mix_heads q", args.q, {tokens, heads, dim});
  expect("mix_heads weight", args.weight, DType::f32, {heads, dim});
  expect("mix_heads bias", args.bias, DType::f32, {heads});
  for (const View& view : {args.first, args.second, args.y})
    expect("mix_heads output of attention", view, args.q.dtype, {tokens, heads * dim});
}

}  // namespace octavo
