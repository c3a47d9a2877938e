// Compares the operators of mixture-of-experts layers with the reference, for each CPU instruction set of
// this machine and for CUDA.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

class Experts : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Experts, testing::ValuesIn(test_backends()), test_backend_name);

struct Routes {
  TestTensor weights;
  std::vector<std::int32_t> pair_rows, tokens, starts;

  Routes(Backend& backend, const TestTensor& logits, std::int64_t n, std::int64_t experts,
         const RouterRule& rule, const View& bias = {}, const View& scales = {}, const View& given = {})
      : weights(DType::f32, {n, rule.chosen}),
        pair_rows(static_cast<std::size_t>(n * rule.chosen)),
        tokens(pair_rows.size()),
        starts(static_cast<std::size_t>(experts) + 1) {
    OnDevice on(backend);
    backend.ops.route(*backend.stream,
                      {.logits = on(logits.view()),
                       .bias = on(bias),
                       .scales = on(scales),
                       .given = on(given),
                       .rule = rule,
                       .weights = on(weights.view()),
                       .pair_rows = on(View::of(pair_rows.data(), DType::i32, {n, rule.chosen})),
                       .tokens = on(View::of(std::span(tokens))),
                       .starts = on(View::of(std::span(starts)))});
    on.fetch();
  }
};

TEST_P(Experts, Route) {
  TestRandom random(1);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 70), experts = random.integer(1, random.coin() ? 8 : 130);
    const RouterRule rule{random.integer(1, static_cast<int>(std::min<std::int64_t>(experts, 8))),
                          random.coin()};
    TestTensor logits = random.tensor(DType::f32, {n, experts}, -4, 4);
    if (random.coin())  // makes some logits equal
      for (std::int64_t i = 0; i < logits.elements(); ++i) logits.set(i, std::round(logits[i]));
    const Routes ours(*tested, logits, n, experts, rule), theirs(reference, logits, n, experts, rule);
    EXPECT_EQ(ours.pair_rows, theirs.pair_rows);
    EXPECT_EQ(ours.tokens, theirs.tokens);
    EXPECT_EQ(ours.starts, theirs.starts);
    EXPECT_LE(difference(ours.weights, theirs.weights, 1e-6, 1e-5), 1);
  }
}

TEST_P(Experts, RouteWithinGroupsAndWithABias) {
  TestRandom random(4);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t n = random.integer(1, 30), size = random.integer(1, 33);
    RouterRule rule{
        .renormalise = random.coin(),
        .scores = random.pick({RouterScores::softmax, RouterScores::sigmoid, RouterScores::sqrt_softplus}),
        .scale = random.real(0.5, 3),
        .groups = random.integer(1, 8),
        .group_best = random.integer(1, 2)};
    rule.groups_kept = random.integer(1, rule.groups);
    rule.chosen = random.integer(1, static_cast<int>(std::min<std::int64_t>(8, rule.groups_kept * size)));
    const std::int64_t experts = rule.groups * size;
    TestTensor logits = random.tensor(DType::f32, {n, experts}, -4, 4);
    const TestTensor bias = random.tensor(DType::f32, {experts}, -0.3F, 0.3F);
    const TestTensor scale = random.tensor(DType::f32, {experts}, 0.5F, 2);
    const View with = random.coin() ? bias.view() : View{}, scales = random.coin() ? scale.view() : View{};
    const Routes ours(*tested, logits, n, experts, rule, with, scales),
        theirs(reference, logits, n, experts, rule, with, scales);
    EXPECT_EQ(ours.pair_rows, theirs.pair_rows);
    EXPECT_EQ(ours.tokens, theirs.tokens);
    EXPECT_EQ(ours.starts, theirs.starts);
    EXPECT_LE(difference(ours.weights, theirs.weights, 1e-6, 1e-5), 1);
  }
}

TEST_P(Experts, RouteToGivenExperts) {
  TestRandom random(8);
  for (int round = 0; round < 30; ++round) {
    const std::int64_t n = random.integer(1, 30);
    const int experts = random.integer(1, 40);
    const RouterRule rule{
        .chosen = random.integer(1, std::min(experts, 4)),
        .renormalise = random.coin(),
        .scores = random.pick({RouterScores::softmax, RouterScores::sigmoid, RouterScores::sqrt_softplus})};
    const TestTensor logits = random.tensor(DType::f32, {n, experts}, -4, 4);
    TestTensor given(DType::f32, {n, rule.chosen});
    for (std::int64_t i = 0; i < n; ++i) {
      const int first = random.integer(0, experts - 1);
      for (int k = 0; k < rule.chosen; ++k)
        given.set(i * rule.chosen + k, static_cast<float>((first + k) % experts));
    }
    const Routes ours(*tested, logits, n, experts, rule, {}, {}, given.view()),
        theirs(reference, logits, n, experts, rule, {}, {}, given.view());
    EXPECT_EQ(ours.pair_rows, theirs.pair_rows);
    EXPECT_EQ(ours.tokens, theirs.tokens);
    EXPECT_EQ(ours.starts, theirs.starts);
    EXPECT_LE(difference(ours.weights, theirs.weights, 1e-6, 1e-5), 1);
  }
}

TEST_P(Experts, RouteBySparsemixer) {
  TestRandom random(6);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t n = random.integer(1, 30), experts = random.integer(1, 40);
    const RouterRule rule{.chosen = random.integer(1, static_cast<int>(std::min<std::int64_t>(experts, 4))),
                          .scores = RouterScores::sparsemixer,
                          .jitter = random.real(0.005F, 0.6F)};
    const TestTensor logits = random.tensor(DType::f32, {n, experts}, -4, 4);
    const Routes ours(*tested, logits, n, experts, rule), theirs(reference, logits, n, experts, rule);
    EXPECT_EQ(ours.pair_rows, theirs.pair_rows);
    EXPECT_LE(difference(ours.weights, theirs.weights, 1e-6, 1e-5), 1);
  }
}

TEST_P(Experts, WhateverTheLogitsAreEveryPairHasAPlace) {
  TestTensor logits(DType::f32, {3, 5});
  for (std::int64_t i = 0; i < 5; ++i) {
    logits.set(i, NAN);
    logits.set(5 + i, -INFINITY);
    logits.set(10 + i, i == 2 ? INFINITY : 1);
  }
  for (const RouterScores scores : {RouterScores::softmax, RouterScores::sigmoid, RouterScores::sparsemixer,
                                    RouterScores::sqrt_softplus}) {
    const Routes routes(*tested, logits, 3, 5, {.chosen = 3, .scores = scores});
    std::vector<std::int32_t> pair_rows = routes.pair_rows;
    std::ranges::sort(pair_rows);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(pair_rows[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(routes.starts.back(), 9);
  }
}

TEST_P(Experts, GroupedMatmulIsMatmulOfEachToTheBit) {
  TestRandom random(2);
  for (int round = 0; round < 25; ++round) {
    const std::int64_t experts = random.integer(1, 5), cols = random.integer(1, 70);
    const std::int64_t rows = random.integer(1, 90), tokens = random.integer(1, 30);
    const DType format = random.pick({DType::f32, DType::bf16});
    std::vector<TestTensor> matrices;
    std::vector<WeightPtr> weights;
    std::vector<const Weight*> pointers;
    for (std::int64_t e = 0; e < experts; ++e) {
      matrices.push_back(random.tensor(format, {rows, cols}));
      const std::vector<MatrixPart> parts{{.values = matrices.back().view()}};
      weights.push_back(tested->ops.prepare(*tested->device, {parts, format}).value());
      pointers.push_back(weights.back().get());
    }
    std::vector<std::int32_t> starts{0}, from;
    for (std::int64_t e = 0; e < experts; ++e) starts.push_back(starts.back() + random.integer(0, 20));
    for (std::int32_t p = 0; p < starts.back(); ++p)
      from.push_back(random.integer(0, static_cast<int>(tokens) - 1));
    const std::int64_t pair_rows = starts.back();
    if (pair_rows == 0) continue;
    const bool gathered = random.coin(), biased = random.coin();
    const TestTensor x = random.tensor(format, {gathered ? tokens : pair_rows, cols});
    const TestTensor bias = random.tensor(DType::f32, {experts, rows});
    TestTensor y(format, {pair_rows, rows}), expected(format, {pair_rows, rows});
    OnDevice on(*tested);
    tested->ops.grouped_matmul(*tested->stream, {.x = on(x.view()),
                                                 .rows = gathered ? on(View::of(std::span(from))) : View{},
                                                 .starts = on(View::of(std::span(starts))),
                                                 .w = pointers,
                                                 .bias = biased ? on(bias.view()) : View{},
                                                 .y = on(y.view())});
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int64_t p = starts[static_cast<std::size_t>(e)]; p < starts[static_cast<std::size_t>(e) + 1];
           ++p) {
        View its_bias = on(bias.view()).rows(e, 1);
        its_bias = View::of(its_bias.data, DType::f32, {rows});
        const std::int64_t row = gathered ? from[static_cast<std::size_t>(p)] : p;
        tested->ops.matmul(*tested->stream, {.x = on(x.view()).rows(row, 1),
                                             .w = *pointers[static_cast<std::size_t>(e)],
                                             .bias = biased ? its_bias : View{},
                                             .y = on(expected.view()).rows(p, 1)});
      }
    on.fetch();
    ASSERT_EQ(y, expected) << pair_rows << " places, " << rows << " x " << cols << " " << name(format);
  }
}

TEST_P(Experts, Combine) {
  TestRandom random(3);
  for (int round = 0; round < 30; ++round) {
    const std::int64_t n = random.integer(1, 20), chosen = random.integer(1, 6);
    const std::int64_t dim = random.integer(1, random.coin() ? 40 : 2500);
    const DType format = random.pick({DType::f32, DType::bf16});
    const TestTensor y = random.tensor(format, {n * chosen, dim}), shared = random.tensor(format, {n, dim});
    const TestTensor weights = random.tensor(DType::f32, {n, chosen});
    const TestTensor gate = random.tensor(DType::f32, {n, 1}, -3, 3);
    std::vector<std::int32_t> pair_rows(static_cast<std::size_t>(n * chosen));
    std::iota(pair_rows.begin(), pair_rows.end(), 0);
    random.shuffle(pair_rows);
    const bool with_shared = random.coin(), gated = random.coin(), weighted = random.integer(0, 3) > 0;
    const Activation activation = random.pick({Activation::sigmoid, Activation::softplus});
    const auto run = [&](Backend& backend) {
      TestTensor out(format, {n, dim});
      OnDevice on(backend);
      backend.ops.combine(*backend.stream,
                          {.y = on(y.view()),
                           .pair_rows = on(View::of(pair_rows.data(), DType::i32, {n, chosen})),
                           .weights = weighted ? on(weights.view()) : View{},
                           .shared = with_shared ? on(shared.view()) : View{},
                           .shared_gate = gated ? on(gate.view()) : View{},
                           .gate_activation = activation,
                           .out = on(out.view())});
      on.fetch();
      return out;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 2e-6, last_digit(format)), 1);
  }
}

}  // namespace
}  // namespace octavo
