// Products on Hopper's instructions, as the emulated device models them: against the specification, and the same bits
// whatever the number of rows beside a row.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/backends.h"
#include "kernels/cuda/emulator/memory.h"
#include "kernels/test_backends.h"
#include "kernels/test_tensors.h"

namespace octavo {
namespace {

class Wgmma : public testing::Test {
 protected:
  static Backend hopper() {
    cuda::emulated::set_wgmma(true);
    Backend backend = make_cuda_backend().value();
    cuda::emulated::set_wgmma(false);
    return backend;
  }
  Backend tested = hopper(), reference = make_reference_backend();
  TestRandom random{41};
};

// The first rows of x alone must get the bits that they get among all.
TEST_F(Wgmma, ProductsAreTheReferencesAndTheSameForEveryBatch) {
  struct Case {
    std::int64_t m, rows, cols;
  };
  // Slices: less than one, some that the teams share unevenly, more than there are teams; rows for each tile.
  for (const Case& c : {Case{1, 8, 24}, {7, 72, 1000}, {16, 130, 1100}, {30, 64, 5200}, {64, 100, 2050},
                        {128, 64, 2112}, {130, 136, 1096}, {300, 130, 1030}}) {
    const DType format = random.pick({DType::bf16, DType::f16}), out = random.pick({format, DType::f32});
    const TestTensor x = random.tensor(format, {c.m, c.cols}), matrix = random.tensor(format, {c.rows, c.cols});
    const TestTensor bias = random.tensor(DType::f32, {c.rows});
    const std::vector<MatrixPart> parts{{.values = matrix.view()}};
    const auto run = [&](Backend& backend, std::int64_t m) {
      const WeightPtr w = backend.ops.prepare(*backend.device, {parts, format}).value();
      TestTensor y(out, {m, c.rows});
      OnDevice on(backend);
      backend.ops.matmul(*backend.stream,
                         {.x = on(x.view().rows(0, m)), .w = *w, .bias = on(bias.view()), .y = on(y.view())});
      on.fetch();
      return y;
    };
    const TestTensor all = run(tested, c.m);
    ASSERT_LE(difference(all, run(reference, c.m), 2e-5, out == DType::f32 ? 1e-4 : 0.01), 1)
        << c.m << " x " << c.cols << " x " << c.rows << " " << name(format);
    for (const std::int64_t m : {std::int64_t{1}, std::int64_t{10}, std::int64_t{20}, std::int64_t{50}, std::int64_t{100}})
      if (m < c.m) {
        ASSERT_TRUE(run(tested, m) == all.rows(0, m)) << m << " of " << c.m;
      }
  }
}

// Rows that are gathered, experts without any, and more rows of one than a tile has.
TEST_F(Wgmma, ExpertsGetTheirRows) {
  for (const int each : {2, 20, 60}) {
    const std::int64_t experts = 5, rows = 80, cols = 1064, tokens = 40;
    std::vector<TestTensor> matrices;
    std::vector<std::int32_t> starts{0}, places;
    for (std::int64_t e = 0; e < experts; ++e) {
      matrices.push_back(random.tensor(DType::bf16, {rows, cols}));
      starts.push_back(starts.back() + (e == 2 ? 0 : random.integer(1, 2 * each)));
    }
    for (std::int32_t i = 0; i < starts.back(); ++i) places.push_back(random.integer(0, tokens - 1));
    const TestTensor x = random.tensor(DType::bf16, {tokens, cols}), bias = random.tensor(DType::f32, {experts, rows});
    const auto run = [&](Backend& backend) {
      std::vector<WeightPtr> weights;
      std::vector<const Weight*> list;
      for (const TestTensor& matrix : matrices) {
        const std::vector<MatrixPart> parts{{.values = matrix.view()}};
        weights.push_back(backend.ops.prepare(*backend.device, {parts, DType::bf16}).value());
        list.push_back(weights.back().get());
      }
      TestTensor y(DType::bf16, {starts.back(), rows});
      OnDevice on(backend);
      backend.ops.grouped_matmul(*backend.stream, {.x = on(x.view()),
                                                   .rows = on(View::of(std::span(places))),
                                                   .starts = on(View::of(std::span(starts))),
                                                   .w = list,
                                                   .bias = on(bias.view()),
                                                   .y = on(y.view())});
      on.fetch();
      return y;
    };
    ASSERT_LE(difference(run(tested), run(reference), 2e-5, 0.01), 1) << each;
  }
}

// Of x that begins at any number, which copies of 16 bytes cannot take.
TEST_F(Wgmma, RowsOfXMayLieAnywhere) {
  const TestTensor matrix = random.tensor(DType::bf16, {64, 200}), wide = random.tensor(DType::bf16, {9, 203});
  const std::vector<MatrixPart> parts{{.values = matrix.view()}};
  const auto run = [&](Backend& backend) {
    const WeightPtr w = backend.ops.prepare(*backend.device, {parts, DType::bf16}).value();
    TestTensor y(DType::bf16, {9, 64});
    OnDevice on(backend);
    backend.ops.matmul(*backend.stream, {.x = on(wide.view()).columns(3, 200), .w = *w, .y = on(y.view())});
    on.fetch();
    return y;
  };
  ASSERT_LE(difference(run(tested), run(reference), 2e-5, 0.01), 1);
}

}  // namespace
}  // namespace octavo
