// Tests products with wgmma on the emulator. The products must be near the reference, and a row must have
// the same bits for any number of rows.
#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/length.h"
#include "kernels/backends.h"
#include "kernels/testing/backends.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

class Wgmma : public testing::Test {
 protected:
  static TestTensor as_f32(const TestTensor& from) {
    TestTensor to(DType::f32, {from.view().size(0), from.view().size(1)});
    for (std::int64_t i = 0; i < to.view().size(0) * to.view().size(1); ++i) to.set(i, from[i]);
    return to;
  }
  TestTensor exact_product(const TestTensor& x, const TestPart& part) {
    TestTensor numbers(DType::f32, {part.rows, part.cols});
    std::vector<float> row(static_cast<std::size_t>(part.cols));
    for (std::int64_t r = 0; r < part.rows; ++r) {
      dequantize(part.part(), r, row.data());
      for (std::int64_t k = 0; k < part.cols; ++k) numbers.set(r * part.cols + k, row[static_cast<std::size_t>(k)]);
    }
    const std::vector<MatrixPart> parts{{.values = numbers.view()}};
    const WeightPtr w = reference.ops.prepare(*reference.device, {parts, DType::f32}).value();
    const TestTensor wide = as_f32(x);
    TestTensor y(DType::f32, {x.view().size(0), part.rows});
    reference.ops.matmul(*reference.stream, {.x = wide.view(), .w = *w, .y = y.view()});
    return y;
  }
  TestTensor product(const TestTensor& x, const TestPart& part, std::int64_t m, DType out = DType::f32) {
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w = tested.ops.prepare(*tested.device, {parts, x.view().dtype}).value();
    TestTensor y(out, {m, part.rows});
    OnDevice on(tested);
    tested.ops.matmul(*tested.stream, {.x = on(x.view().rows(0, m)), .w = *w, .y = on(y.view())});
    on.fetch();
    return y;
  }

  Backend tested = make_emulated_hopper().value(), reference = make_reference_backend();
  TestRandom random{41};
};

// The first rows of x must have the same bits alone and among all rows.
TEST_F(Wgmma, ProductsAreTheReferencesAndTheSameForEveryBatch) {
  struct Case {
    std::int64_t m, rows, cols;
  };
  // The cases are: less than one slice; slices that teams share unevenly; more slices than teams; rows for
  // each tile size.
  for (const Case& c : {Case{1, 8, 24}, {7, 72, 1000}, {16, 130, 1100}, {30, 64, 5200}, {64, 100, 2050},
                        {128, 64, 2112}, {130, 136, 1096}, {300, 130, 1030}, {300, 130, 2120}, {5, 64, 17500}, {60, 300, 3100}}) {
    if (!long_tests() && c.m * c.rows * c.cols > 45'000'000) continue;
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

// Thread blocks that share tiles must find their counters at zero in a replay, although the last product
// used the same memory.
TEST_F(Wgmma, SharedTilesAreRecorded) {
  const std::int64_t m = 3, rows = 200, cols = 5000;
  const TestTensor x = random.tensor(DType::bf16, {m, cols}), matrix = random.tensor(DType::bf16, {rows, cols});
  const std::vector<MatrixPart> parts{{.values = matrix.view()}};
  const WeightPtr w = tested.ops.prepare(*tested.device, {parts, DType::bf16}).value();
  TestTensor at_once(DType::f32, {m, rows}), recorded(DType::f32, {m, rows});
  OnDevice on(tested);
  const View in = on(x.view()), out = on(recorded.view());
  tested.ops.matmul(*tested.stream, {.x = in, .w = *w, .y = on(at_once.view())});
  const auto recording = tested.stream->record([&] { tested.ops.matmul(*tested.stream, {.x = in, .w = *w, .y = out}); });
  for (int i = 0; i < 3; ++i) tested.stream->replay(*recording);
  on.fetch();
  EXPECT_TRUE(recorded == at_once);
}

// Covers gathered rows, experts without rows, and experts with more rows than a tile.
TEST_F(Wgmma, ExpertsGetTheirRows) {
  for (const int each : {2, 20, 60}) {
    const std::int64_t experts = 5, rows = 80, cols = 1064, tokens = 40;
    std::vector<TestTensor> matrices;
    std::vector<std::int32_t> starts{0}, gathered;
    for (std::int64_t e = 0; e < experts; ++e) {
      matrices.push_back(random.tensor(DType::bf16, {rows, cols}));
      starts.push_back(starts.back() + (e == 2 ? 0 : random.integer(1, 2 * each)));
    }
    for (std::int32_t i = 0; i < starts.back(); ++i) gathered.push_back(random.integer(0, tokens - 1));
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
                                                   .rows = on(View::of(std::span(gathered))),
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

// Covers every format and every group size, with several batch sizes and numbers of slices.
TEST_F(Wgmma, CodesAreNeverRounded) {
  struct Case {
    Encoding encoding;
    std::int64_t m, rows, cols, groups;
    bool zeros = false;
  };
  for (const Case& c : {Case{Encoding::int4, 3, 72, 1152, 9}, {Encoding::int4, 20, 60, 2176, 17, true},
                        {Encoding::int4, 40, 64, 1184, 37, true}, {Encoding::int8, 5, 65, 1100, 1},
                        {Encoding::int8, 33, 60, 1152, 12, true}, {Encoding::int8, 130, 130, 384, 4},
                        {Encoding::fp8, 9, 80, 1280, 10}, {Encoding::fp8, 70, 64, 1030, 1},
                        {Encoding::mxfp4, 6, 60, 4256, 133}, {Encoding::mxfp4, 140, 130, 1056, 33},
                        {Encoding::q8_0, 4, 40, 1088, 0}, {Encoding::q4_0, 30, 64, 1216, 0},
                        {Encoding::iq4_nl, 7, 33, 96, 0}}) {
    const TestPart part = c.groups == 0 ? random_blocks(random, c.encoding, c.rows, c.cols)
                                        : random_codes(random, c.encoding, c.rows, c.cols, c.groups, c.zeros);
    const DType format = random.pick({DType::bf16, DType::f16});
    const TestTensor x = random.tensor(format, {c.m, c.cols});
    const TestTensor all = product(x, part, c.m);
    ASSERT_LE(difference(all, exact_product(x, part), 1e-3, 1e-4), 1)
        << name(c.encoding) << " " << name(format) << " " << c.m << " x " << c.cols << " / " << c.groups;
    for (const std::int64_t m : {std::int64_t{1}, std::int64_t{10}, std::int64_t{100}})
      if (m < c.m) {
        ASSERT_TRUE(product(x, part, m) == all.rows(0, m)) << name(c.encoding) << " " << m << " of " << c.m;
      }
  }
}

// Matrices that the layout in fragment order does not support use the plain layout. Reads of single numbers
// must work in both layouts.
TEST_F(Wgmma, CodesAreFoundInBothLayouts) {
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part = random_part(random, encoding, 40, 700);
    const TestTensor x = random.tensor(DType::bf16, {5, part.cols});
    // The tolerance permits kernels that round the dequantised numbers.
    ASSERT_LE(difference(product(x, part, 5), exact_product(x, part), 0.25, 0.01), 1) << name(encoding);
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w = tested.ops.prepare(*tested.device, {parts, DType::bf16}).value();
    std::vector<std::int32_t> ids{39, 0};
    TestTensor out(DType::f32, {2, part.cols});
    OnDevice on(tested);
    tested.ops.embed(*tested.stream, {.ids = on(View::of(std::span(ids))), .table = *w, .out = on(out.view())});
    on.fetch();
    std::vector<float> row(static_cast<std::size_t>(part.cols));
    for (std::int64_t i = 0; i < 2; ++i) {
      dequantize(part.part(), ids[static_cast<std::size_t>(i)], row.data());
      for (std::int64_t k = 0; k < part.cols; ++k)
        ASSERT_EQ(out[i * part.cols + k], row[static_cast<std::size_t>(k)]) << name(encoding) << " " << k;
    }
  }
}

TEST_F(Wgmma, ExpertsOfCodesGetTheirRows) {
  for (const int each : {2, 20}) {
    const std::int64_t experts = 4, rows = 80, cols = 1056, tokens = 40;
    std::vector<TestPart> parts;
    std::vector<WeightPtr> owned;
    std::vector<const Weight*> list;
    std::vector<std::int32_t> starts{0}, gathered;
    for (std::int64_t e = 0; e < experts; ++e) {
      parts.push_back(random_codes(random, Encoding::mxfp4, rows, cols, cols / 32, false));
      const std::vector<MatrixPart> part{parts.back().part()};
      owned.push_back(tested.ops.prepare(*tested.device, {part, DType::bf16}).value());
      list.push_back(owned.back().get());
      starts.push_back(starts.back() + (e == 1 ? 0 : random.integer(1, 2 * each)));
    }
    for (std::int32_t i = 0; i < starts.back(); ++i) gathered.push_back(random.integer(0, tokens - 1));
    const TestTensor x = random.tensor(DType::bf16, {tokens, cols});
    TestTensor y(DType::bf16, {starts.back(), rows});
    OnDevice on(tested);
    tested.ops.grouped_matmul(*tested.stream, {.x = on(x.view()),
                                               .rows = on(View::of(std::span(gathered))),
                                               .starts = on(View::of(std::span(starts))),
                                               .w = list,
                                               .y = on(y.view())});
    on.fetch();
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
      const TestTensor alone = product(x, parts[e], tokens, DType::bf16);
      for (std::int64_t i = starts[e]; i < starts[e + 1]; ++i)
        ASSERT_TRUE(y.rows(i, 1) == alone.rows(gathered[static_cast<std::size_t>(i)], 1))
            << each << " " << e << " " << i;
    }
  }
}

// x may begin at any element, so copies of 16 bytes may be impossible.
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
