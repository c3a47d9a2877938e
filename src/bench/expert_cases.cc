// Cases of `octavo bench ops` for mixture-of-experts layers: the router, products with experts, and their
// weighted sum.
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr std::int64_t kExperts = 8, kChosen = 2;
constexpr std::int64_t kTokens[] = {1, 16, 512};

OpCase expert_case(const OpShapes& shapes, std::string_view operation, std::int64_t n,
                   std::string_view format) {
  return {.operation = fmt::format("{} {}", operation, shapes.name),
          .shape = fmt::format("{} tokens, {} of {} experts", n, kChosen, kExperts),
          .format = std::string(format),
          .calls = 1,
          .bytes = 0,
          .operations = 0};
}

Result<> token_cases(Backend& backend, const OpShapes& s, std::int64_t n,
                     std::span<const Weight* const> experts, const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t pair_rows = n * kChosen;
  std::vector<float> logits(static_cast<std::size_t>(n * kExperts));
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(random_bits(2, i) % 1000) * 1e-3f;
  TRY(const Buffer logit_memory, on_device(backend, logits));
  const auto room = [&](std::int64_t items, std::size_t size) {
    return backend.device->allocate(static_cast<std::size_t>(items) * size);
  };
  TRY(const Buffer weights, room(pair_rows, sizeof(float)));
  TRY(const Buffer rows, room(pair_rows, sizeof(std::int32_t)));
  TRY(const Buffer token, room(pair_rows, sizeof(std::int32_t)));
  TRY(const Buffer start, room(kExperts + 1, sizeof(std::int32_t)));
  const View starts = start.view(DType::i32, {kExperts + 1});
  const RouteArgs route{.logits = logit_memory.view(DType::f32, {n, kExperts}),
                        .rule = {.chosen = kChosen, .renormalise = true},
                        .weights = weights.view(DType::f32, {n, kChosen}),
                        .pair_rows = rows.view(DType::i32, {n, kChosen}),
                        .tokens = token.view(DType::i32, {pair_rows}),
                        .starts = starts};
  OpCase router = expert_case(s, "route", n, "f32");
  router.calls = 64;  // a single call is too short to time
  router.operations = static_cast<double>(n * kExperts) * 4;
  visitor.measure_calls(std::move(router), [&] { ops.route(stream, route); });

  ops.route(stream, route);  // computes the input of the other operators
  const DType act = experts[0]->activation();
  TRY(const Buffer x, on_device(backend, std::vector<std::uint8_t>(
                                             static_cast<std::size_t>(n * s.dim) * size_of(act), 0x3d)));
  TRY(const Buffer y, room(pair_rows * std::max(s.hidden, s.dim), size_of(act)));
  OpCase product = expert_case(s, "grouped_matmul", n, name(act));
  const auto bytes = static_cast<double>(experts[0]->bytes());
  // Upper bound of the bytes that are read: it assumes that all tokens have different experts.
  product.bytes = bytes * static_cast<double>(std::min(pair_rows, kExperts));
  product.operations = 2.0 * static_cast<double>(pair_rows * s.dim * s.hidden);
  product.arithmetic = Arithmetic::bf16;
  visitor.measure_calls(std::move(product), [&] {
    ops.grouped_matmul(stream, {.x = x.view(act, {n, s.dim}),
                                .rows = route.tokens,
                                .starts = starts,
                                .w = experts,
                                .y = y.view(act, {pair_rows, s.hidden})});
  });

  TRY(const Buffer out, room(n * s.dim, size_of(act)));
  OpCase sum = expert_case(s, "combine", n, name(act));
  sum.calls = 64;
  sum.operations = 2.0 * static_cast<double>(pair_rows * s.dim);
  visitor.measure_calls(std::move(sum), [&] {
    ops.combine(stream, {.y = y.view(act, {pair_rows, s.dim}),
                         .pair_rows = route.pair_rows,
                         .weights = route.weights,
                         .out = out.view(act, {n, s.dim})});
  });
  return {};
}

}  // namespace

Result<> expert_cases(Backend& backend, const OpShapes& s, const OpVisitor& visitor) {
  // All elements are small and equal. Their values do not change the time.
  const std::vector<std::uint8_t> numbers(static_cast<std::size_t>(s.hidden * s.dim) * 2, 0x3c);
  const MatrixPart part{
      .values = View::of(const_cast<std::uint8_t*>(numbers.data()), DType::bf16, {s.hidden, s.dim})};
  std::vector<WeightPtr> prepared;
  std::vector<const Weight*> experts;
  for (std::int64_t e = 0; e < kExperts; ++e) {
    TRY(prepared.emplace_back(),
        backend.ops.prepare(*backend.device, {std::span(&part, 1), backend.ops.activation(DType::bf16)}));
    experts.push_back(prepared.back().get());
  }
  for (const std::int64_t n : kTokens) TRY_VOID(token_cases(backend, s, n, experts, visitor));
  return {};
}

}  // namespace octavo
