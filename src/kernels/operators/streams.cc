#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

template <>
void check(const CollapseStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1), dim = args.x.size(2);
  const bool mixes = static_cast<bool>(args.mix), posts = static_cast<bool>(args.post);
  const std::int64_t rows = streams * (mixes ? 2 + streams : posts ? 2 : 1);
  CHECK(streams > 0 && streams <= kMaxStreams, "{} streams", streams);
  CHECK(!mixes || (posts && args.iterations > 0));
  expect("collapse_streams x", args.x, DType::f32, {n, streams, dim});
  expect("collapse_streams matrix", args.matrix, DType::f32, {rows, streams * dim});
  expect("collapse_streams base", args.base, DType::f32, {rows});
  expect("collapse_streams scale", args.scale, DType::f32, {mixes ? 3 : posts ? 2 : 1});
  expect("collapse_streams out", args.out, DType::f32, {n, dim});
  if (posts) expect("collapse_streams post", args.post, DType::f32, {n, streams});
  if (mixes) expect("collapse_streams mix", args.mix, DType::f32, {n, streams * streams});
}

template <>
void check(const ExpandStreamsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), streams = args.x.size(1), dim = args.x.size(2);
  CHECK(streams > 0 && streams <= kMaxStreams, "{} streams", streams);
  expect("expand_streams x", args.x, DType::f32, {n, streams, dim});
  expect_activation("expand_streams delta", args.delta, {n, dim});
  expect("expand_streams post", args.post, DType::f32, {n, streams});
  if (args.mix) expect("expand_streams mix", args.mix, DType::f32, {n, streams * streams});
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

}  // namespace octavo
