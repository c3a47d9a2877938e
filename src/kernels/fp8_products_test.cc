// Compares products that round activations to fp8 (fp8_rounding.h) with the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/testing/backends.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

// Backends that round activations: the CUDA backend, and its emulation of a Hopper.
std::vector<TestBackend> rounding_backends() {
  std::vector<TestBackend> list{{"cuda", [](int) { return make_cuda_backend(); }}};
#ifdef OCTAVO_CUDA_EMULATED
  list.push_back({"hopper", [](int) { return make_emulated_hopper(); }});
#endif
  return list;
}

class Fp8Products : public BesideTheReference {
 protected:
  // `activation` is the format of x. `rows` is the number of rows of x that take part.
  TestTensor product(Backend& backend, const TestTensor& x, std::int64_t rows, const TestPart& part,
                     const Fp8Rounding& rounding, DType out, const TestTensor& bias) {
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w =
        backend.ops
            .prepare(*backend.device, {.parts = parts, .activation = x.view().dtype, .rounding = rounding})
            .value();
    TestTensor y(out, {rows, part.rows});
    OnDevice on(backend);
    backend.ops.matmul(
        *backend.stream,
        {.x = on(x.view().rows(0, rows)), .w = *w, .bias = on(bias.view()), .y = on(y.view())});
    on.fetch();
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Fp8Products, testing::ValuesIn(rounding_backends()), test_backend_name);

// Returns rows of very different sizes, whose groups also differ.
TestTensor uneven_rows(TestRandom& random, DType type, std::int64_t rows, std::int64_t cols) {
  TestTensor x = random.tensor(type, {rows, cols});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.set(i, std::ldexp(x[i], static_cast<int>(i / cols * 5 % 13 + i % cols / 128 % 7) - 8));
  return x;
}

// On the emulator, the results are within the rounding errors of f32 of the reference, so both backends round
// x to the same codes. Tensor cores keep about 13 bits of a sum of 128 columns. The first rows of x have the
// same bits alone and among all rows.
TEST_P(Fp8Products, AgreeWithTheReferenceForEveryBatch) {
  struct Case {
    std::int64_t m, rows, cols, groups;
    Fp8Rounding rounding;
  };
  TestRandom random(61);
  const double precision = tested->device->name() == "emulated" ? 1e-5 : 1e-3;
  // one scale for a row, for 128 and 256 columns; a scale of the checkpoint; columns that no tile divides
  for (const Case& c : {Case{1, 8, 24, 1, {.group = 24}},
                        {5, 72, 1000, 1, {.group = 1000}},
                        {16, 130, 1152, 9, {.group = 128}},
                        {20, 66, 2176, 17, {.group = 128}},
                        {40, 64, 2560, 5, {.group = 256}},
                        {70, 140, 300, 1, {.group = 128}},
                        {140, 130, 1280, 10, {.group = 128}},
                        {9, 64, 9216, 72, {.group = 9216}},
                        {33, 80, 1100, 1, {.group = 1100, .scale = 0.004f}}}) {
    const TestPart part = random_codes(random, Encoding::fp8, c.rows, c.cols, c.groups, false);
    const DType format = random.pick({DType::bf16, DType::f16, DType::f32}),
                out = random.pick({format, DType::f32});
    const TestTensor x = uneven_rows(random, format, c.m, c.cols), bias = random.tensor(DType::f32, {c.rows});
    const TestTensor all = product(*tested, x, c.m, part, c.rounding, out, bias);
    const TestTensor expected = product(reference, x, c.m, part, c.rounding, out, bias);
    // Rows differ in size, so each is compared with its own largest result.
    for (std::int64_t i = 0; i < c.m; ++i) {
      double largest = 1e-30;
      for (std::int64_t r = 0; r < c.rows; ++r)
        largest = std::max(largest, std::abs(double{expected[i * c.rows + r]}));
      ASSERT_LE(difference(all.rows(i, 1), expected.rows(i, 1), largest * precision,
                           out == DType::f32 ? precision : 0.01),
                1)
          << c.m << " x " << c.cols << " x " << c.rows << " " << name(format) << " row " << i;
    }
    for (const std::int64_t m : {1, 6, 10, 20, 50, 130})
      if (m < c.m) {
        ASSERT_TRUE(product(*tested, x, m, part, c.rounding, out, bias) == all.rows(0, m))
            << m << " of " << c.m;
      }
  }
}

// Rounded activations change results, and by about the precision of e4m3 (three bits of fraction).
TEST_P(Fp8Products, AreNearUnroundedOnes) {
  TestRandom random(62);
  const TestPart part = random_codes(random, Encoding::fp8, 64, 1024, 8, false);
  const TestTensor x = random.tensor(DType::f32, {4, 1024}), bias = random.tensor(DType::f32, {64});
  const TestTensor rounded = product(*tested, x, 4, part, {.group = 128}, DType::f32, bias);
  const TestTensor exact = product(reference, x, 4, part, {}, DType::f32, bias);
  double error = 0, size = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    error += std::pow(rounded[i] - exact[i], 2);
    size += std::pow(exact[i], 2);
  }
  EXPECT_GT(std::sqrt(error / size), 0.005);
  EXPECT_LT(std::sqrt(error / size), 0.05);
}

TEST_P(Fp8Products, KeepNaNAndZeros) {
  TestRandom random(63);
  const TestPart part = random_codes(random, Encoding::fp8, 20, 256, 2, false);
  TestTensor x(DType::bf16, {3, 256});  // row 1 is zero
  for (std::int64_t k = 0; k < 256; ++k) {
    x.set(k, random.real(-1, 1));
    x.set(256 + k, 0);
    x.set(512 + k, random.real(-1, 1));
  }
  x.set(512 + 200, std::numeric_limits<float>::infinity());
  x.set(7, std::numeric_limits<float>::quiet_NaN());
  TestTensor bias(DType::f32, {20});
  for (std::int64_t i = 0; i < 20; ++i) bias.set(i, 3);
  const TestTensor y = product(*tested, x, 3, part, {.group = 128}, DType::f32, bias);
  for (std::int64_t r = 0; r < 20; ++r) {
    EXPECT_TRUE(std::isnan(y[r])) << r;
    EXPECT_EQ(y[20 + r], 3) << r;
    EXPECT_TRUE(std::isnan(y[40 + r])) << r;
  }
}

// The scales of the experts differ; the largest counts.
TEST_P(Fp8Products, ExpertsGetTheirRows) {
  TestRandom random(64);
  for (const int each : {2, 40})
    for (const float scale : {0.0f, 0.01f}) {
      const std::int64_t experts = 4, rows = 72, cols = 1152, tokens = 30;
      std::vector<TestPart> parts;
      std::vector<std::int32_t> starts{0}, gathered;
      for (std::int64_t e = 0; e < experts; ++e) {
        parts.push_back(random_codes(random, Encoding::fp8, rows, cols, 9, false));
        starts.push_back(starts.back() + (e == 1 ? 0 : random.integer(1, 2 * each)));
      }
      for (std::int32_t i = 0; i < starts.back(); ++i) gathered.push_back(random.integer(0, tokens - 1));
      const bool gathers = random.coin();
      const TestTensor x = random.tensor(DType::bf16, {gathers ? tokens : starts.back(), cols});
      const TestTensor bias = random.tensor(DType::f32, {experts, rows});
      const auto run = [&](Backend& backend) {
        std::vector<WeightPtr> owned;
        std::vector<const Weight*> list;
        for (std::size_t e = 0; e < parts.size(); ++e) {
          const std::vector<MatrixPart> part{parts[e].part()};
          const Fp8Rounding rounding{.group = scale > 0 ? cols : 128,
                                     .scale = scale * static_cast<float>(e + 1)};
          owned.push_back(
              backend.ops
                  .prepare(*backend.device, {.parts = part, .activation = DType::bf16, .rounding = rounding})
                  .value());
          list.push_back(owned.back().get());
        }
        TestTensor y(DType::bf16, {starts.back(), rows});
        OnDevice on(backend);
        backend.ops.grouped_matmul(*backend.stream,
                                   {.x = on(x.view()),
                                    .rows = gathers ? on(View::of(std::span(gathered))) : View(),
                                    .starts = on(View::of(std::span(starts))),
                                    .w = list,
                                    .bias = on(bias.view()),
                                    .y = on(y.view())});
        on.fetch();
        return y;
      };
      ASSERT_LE(difference(run(*tested), run(reference), 1e-3, 0.01), 1) << each << " " << scale;
    }
}

// A product that needs more memory for its rounded rows must not take the memory of a recording.
TEST_P(Fp8Products, ReplaysUseTheirOwnMemory) {
  TestRandom random(65);
  const TestPart part = random_codes(random, Encoding::fp8, 64, 512, 4, false);
  const std::vector<MatrixPart> parts{part.part()};
  const WeightPtr w =
      tested->ops
          .prepare(*tested->device, {.parts = parts, .activation = DType::bf16, .rounding = {.group = 128}})
          .value();
  if (!tested->stream->asynchronous()) GTEST_SKIP() << "no recordings";
  const TestTensor x = random.tensor(DType::bf16, {60, 512});
  TestTensor at_once(DType::f32, {3, 64}), recorded(DType::f32, {3, 64}), large(DType::f32, {60, 64});
  OnDevice on(*tested);
  const View in = on(x.view()), out = on(recorded.view());
  const auto multiply = [&](std::int64_t rows, const View& y) {
    tested->ops.matmul(*tested->stream, {.x = in.rows(0, rows), .w = *w, .y = y});
  };
  multiply(3, on(at_once.view()));
  const auto recording = tested->stream->record([&] { multiply(3, out); });
  multiply(60, on(large.view()));  // needs more memory for rounded rows
  tested->stream->replay(*recording);
  on.fetch();
  EXPECT_TRUE(recorded == at_once);
}

}  // namespace
}  // namespace octavo
