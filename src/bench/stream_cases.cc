// Cases of `octavo bench ops` for operators on residual streams, with four streams as in Gemma 3n.
#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kCalls = 64;  // a single call is too short to time
constexpr std::int64_t kStreams = 4;

Result<> token_cases(Backend& backend, const OpShapes& s, std::int64_t n, const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  Stream& queue = *backend.stream;
  const auto zeros = [&](std::int64_t count) {
    return on_device(backend, std::vector<float>(static_cast<std::size_t>(count)));
  };
  TRY(const Buffer all, zeros(n * kStreams * s.dim));
  TRY(const Buffer one, zeros(n * s.dim));
  TRY(const Buffer out, zeros(n * s.dim));
  TRY(const Buffer routed, zeros(n * kStreams));
  TRY(const Buffer coefs, zeros(kStreams * kStreams * kStreams));
  const View x = all.view(DType::f32, {n, kStreams, s.dim}), row = one.view(DType::f32, {n, s.dim}),
             router = routed.view(DType::f32, {n, kStreams});
  const auto measure = [&](std::string_view operation, double operations, const std::function<void()>& call) {
    visitor.measure_calls({.operation = fmt::format("{} {}", operation, s.name),
                           .shape = fmt::format("{} rows", n),
                           .format = "f32",
                           .calls = kCalls,
                           .bytes = 0,
                           .operations = operations * static_cast<double>(n * s.dim)},
                          call);
  };
  measure("predict_streams", 2 * kStreams * kStreams, [&] {
    ops.predict_streams(
        queue, {.x = x, .router = router, .coefs = coefs.view(DType::f32, {kStreams * kStreams, kStreams})});
  });
  measure("correct_streams", 2 * kStreams, [&] {
    ops.correct_streams(queue, {.x = x,
                                .before = row,
                                .router = router,
                                .coefs = coefs.view(DType::f32, {kStreams, kStreams}),
                                .out = out.view(DType::bf16, {n, s.dim})});
  });
  measure("match_size", 5,
          [&] { ops.match_size(queue, {.x = row, .like = out.view(DType::f32, {n, s.dim})}); });
  measure("keep_tail", 6,
          [&] { ops.keep_tail(queue, {.x = out.view(DType::bf16, {n, s.dim}), .deviations = 1.6f}); });
  return {};
}

}  // namespace

Result<> stream_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const std::int64_t n : {1, 16, 512}) TRY_VOID(token_cases(backend, shapes, n, visitor));
  return {};
}

}  // namespace octavo
