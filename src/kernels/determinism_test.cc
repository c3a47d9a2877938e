// Tests that a row's result depends neither on other rows nor on the number of threads. attention_test.cc
// tests this for attention.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_weight.h"
#include "kernels/testing/backends.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

class RowsOf : public testing::TestWithParam<TestBackend> {
 protected:
  void SetUp() override {
    if (auto made = GetParam().make(1); !made) GTEST_SKIP() << made.error().message;
  }
  Backend make(int threads) { return GetParam().make(threads).value(); }
};

INSTANTIATE_TEST_SUITE_P(Backends, RowsOf, testing::ValuesIn(test_backends()), test_backend_name);

TEST_P(RowsOf, MatmulIsTheSameForEveryBatch) {
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(21);
  // More rows than the CPU packs at a time: 384, or 512 for matrix tiles, and then a tile that is not full.
  const std::int64_t most = GetParam().slow ? 70 : 540;
  for (const DType format : {DType::f32, DType::bf16, DType::f16})
    for (const DType activation : {DType::f32, format}) {
      const std::int64_t rows = random.integer(1, 300);
      const std::int64_t cols = random.integer(1030, 2300) | 1;
      const TestTensor matrix = random.tensor(format, {rows, cols});
      const std::vector<MatrixPart> parts{{.values = matrix.view()}};
      const WeightPtr w1 = one.ops.prepare(*one.device, {parts, activation}).value();
      const WeightPtr w4 = four.ops.prepare(*four.device, {parts, activation}).value();
      const TestTensor x = random.tensor(w1->activation(), {most, cols});
      TestTensor alone(DType::f32, {most, rows});
      OnDevice on(one);
      const View all_x = on(x.view()), all_y = on(alone.view());
      for (std::int64_t i = 0; i < most; ++i)
        one.ops.matmul(*one.stream, {.x = all_x.rows(i, 1), .w = *w1, .y = all_y.rows(i, 1)});
      on.fetch();
      for (const std::int64_t m : {2, 5, 6, 7, 11, 12, 13, 23, 24, 25, 64, 70, 191, 385, 540}) {
        if (m > most) break;
        TestTensor together(DType::f32, {m, rows});
        OnDevice on_four(four);
        four.ops.matmul(*four.stream,
                        {.x = on_four(x.view()).rows(0, m), .w = *w4, .y = on_four(together.view())});
        on_four.fetch();
        ASSERT_TRUE(together == alone.rows(0, m))
            << m << " rows, " << name(format) << " " << name(activation);
      }
    }
}

TEST_P(RowsOf, RowOperatorsAreTheSameForEveryBatch) {
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(22);
  const std::int64_t n = 60;
  const std::int64_t dim = 2050;
  const TestTensor residual = random.tensor(DType::f32, {n, dim});
  const TestTensor delta = random.tensor(DType::bf16, {n, dim});
  const TestTensor weight = random.tensor(DType::f32, {dim});
  const auto run = [&](Backend& backend, std::int64_t first, std::int64_t count) {
    TestTensor sum = residual.rows(first, count);
    TestTensor normed(DType::bf16, {count, dim});
    TestTensor active(DType::bf16, {count, dim / 2});
    OnDevice on(backend);
    backend.ops.add_norm(*backend.stream, {.residual = on(sum.view()),
                                           .delta = on(delta.view()).rows(first, count),
                                           .norm = {NormKind::rms, 1e-6f, on(weight.view()), {}},
                                           .out = on(normed.view())});
    backend.ops.activate(*backend.stream, {.x = on(normed.view()), .y = on(active.view())});
    on.fetch();
    return std::tuple(sum, normed, active);
  };
  const auto [sums, norms, actives] = run(four, 0, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto [sum, normed, active] = run(one, i, 1);
    ASSERT_TRUE(sum == sums.rows(i, 1) && normed == norms.rows(i, 1) && active == actives.rows(i, 1)) << i;
  }
}

class CpuRows : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (auto made = make_cpu_backend({.threads = 1, .isa = GetParam()}); !made)
      GTEST_SKIP() << made.error().message;
  }
  Backend make(int threads) { return make_cpu_backend({.threads = threads, .isa = GetParam()}).value(); }
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuRows, testing::ValuesIn(kCpuIsas),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(CpuRows, QuantisedMatmulIsTheSameForEveryBatch) {
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(23);
  constexpr std::int64_t kMost = 410;
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part = random_part(random, encoding, random.integer(1, 300), random.integer(1030, 2300));
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w1 = one.ops.prepare(*one.device, {parts, DType::bf16}).value();
    const WeightPtr w4 = four.ops.prepare(*four.device, {parts, DType::bf16}).value();
    const TestTensor x = random.tensor(DType::bf16, {kMost, part.cols});
    TestTensor alone(DType::f32, {kMost, part.rows});
    for (std::int64_t i = 0; i < kMost; ++i)
      one.ops.matmul(*one.stream, {.x = x.view().rows(i, 1), .w = *w1, .y = alone.view().rows(i, 1)});
    for (const std::int64_t m : {2, 5, 6, 7, 13, 64, 191, 385, 410}) {
      TestTensor together(DType::f32, {m, part.rows});
      four.ops.matmul(*four.stream, {.x = x.view().rows(0, m), .w = *w4, .y = together.view()});
      ASSERT_TRUE(together == alone.rows(0, m)) << m << " rows, " << name(encoding);
    }
  }
}

TEST(PanelLayout, AddressesAreDistinctAndFillThePanels) {
  for (const std::int64_t unit : {1, 2}) {
    const cpu::PanelLayout layout{.rows = 70, .cols = 33, .width = 32, .unit = unit, .element_bytes = 2};
    std::vector<bool> taken(static_cast<std::size_t>(layout.bytes() / 2));
    for (std::int64_t row = 0; row < layout.rows; ++row)
      for (std::int64_t col = 0; col < layout.cols; ++col) {
        const auto i = static_cast<std::size_t>(layout.offset(row, col) / 2);
        ASSERT_LT(i, taken.size());
        ASSERT_FALSE(taken[i]);
        taken[i] = true;
      }
    EXPECT_EQ(layout.offset(32, 0), layout.panel_bytes());
  }
}

TEST(PanelLayout, CountsBeyondThirtyTwoBits) {
  const cpu::PanelLayout layout{.rows = std::int64_t{1} << 18,
                                .cols = std::int64_t{1} << 16,
                                .width = 32,
                                .unit = 2,
                                .element_bytes = 2};
  EXPECT_EQ(layout.bytes(), std::int64_t{1} << 35);
  EXPECT_EQ(layout.offset(layout.rows - 1, layout.cols - 1), layout.bytes() - 2);
}

}  // namespace
}  // namespace octavo
