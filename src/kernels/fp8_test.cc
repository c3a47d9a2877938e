// Compares products with e4m3 weights and their scales with the reference, with every instruction set of
// this processor.
#include <gtest/gtest.h>

#include "kernels/testing/quant.h"

namespace octavo {
namespace {

class CpuFp8 : public CpuBesideReference {};

INSTANTIATE_TEST_SUITE_P(Isa, CpuFp8, testing::ValuesIn(kCpuIsas),
                         [](const auto& test) { return std::string(name(test.param)); });

// Returns a part with a scale per row, per square of 128 rows and columns, or per group of another size.
TestPart random_fp8(TestRandom& random, std::int64_t rows) {
  const std::int64_t group = random.pick({0, 128, 130, 2600});
  if (group == 0) return random_codes(random, Encoding::fp8, rows, random.integer(1, 5000), 1, false);
  const std::int64_t groups = random.integer(1, 5000 / static_cast<int>(group) + 1);
  TestPart part = random_codes(random, Encoding::fp8, rows, groups * group, groups, false);
  if (group == 128)
    for (std::int64_t i = groups; i < rows * groups; ++i)
      if (i / groups % 128 != 0)
        part.scales[static_cast<std::size_t>(i)] = part.scales[static_cast<std::size_t>(i - groups)];
  return part;
}

TEST_P(CpuFp8, AgreesWithTheReference) {
  TestRandom random(51);
  for (const DType activation : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t m : {1, 3, 7, 13, 64, 200}) {
      const TestPart first = random_fp8(random, random.integer(1, 300));
      const TestPart second =
          random_codes(random, Encoding::fp8, random.integer(1, 40), first.cols, first.groups, false);
      const std::vector<MatrixPart> parts{first.part(), second.part()};
      const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, activation}).value();
      const WeightPtr expected_w = reference.ops.prepare(*reference.device, {parts, w->activation()}).value();
      const TestTensor x = random.tensor(w->activation(), {m, first.cols});
      const TestTensor bias = random.tensor(DType::f32, {w->rows()});
      TestTensor y(DType::f32, {m, w->rows()}), expected = y;
      cpu->ops.matmul(*cpu->stream, {x.view(), *w, bias.view(), y.view()});
      reference.ops.matmul(*reference.stream, {x.view(), *expected_w, bias.view(), expected.view()});
      // The tolerance covers sums of thousands of numbers up to 448 * 0.02, of both signs.
      ASSERT_LE(difference(y, expected, 1e-4, 2e-2), 1)
          << name(activation) << " " << m << " x " << first.cols << " / " << first.groups;
    }
}

TEST_P(CpuFp8, IsTheSameForEveryBatch) {
  Backend one = make_cpu_backend({.threads = 1, .isa = GetParam()}).value();
  TestRandom random(52);
  const std::int64_t most = GetParam() == CpuIsa::amx_modelled ? 200 : 410;
  for (int round = 0; round < 6; ++round) {
    // The first two parts have one group that does not end with a block of matrix tiles.
    const TestPart part = round < 2 ? random_codes(random, Encoding::fp8, 40, 130 + round, 1, false)
                                    : random_fp8(random, random.integer(1, 300));
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w1 = one.ops.prepare(*one.device, {parts, DType::bf16}).value();
    const WeightPtr w3 = cpu->ops.prepare(*cpu->device, {parts, DType::bf16}).value();
    const TestTensor x = random.tensor(DType::bf16, {most, part.cols});
    TestTensor alone(DType::f32, {most, part.rows});
    for (std::int64_t i = 0; i < most; ++i)
      one.ops.matmul(*one.stream, {.x = x.view().rows(i, 1), .w = *w1, .y = alone.view().rows(i, 1)});
    for (const std::int64_t m : {2, 6, 7, 12, 13, 40, 64, 191, 410}) {
      if (m > most) break;
      TestTensor together(DType::f32, {m, part.rows});
      cpu->ops.matmul(*cpu->stream, {.x = x.view().rows(0, m), .w = *w3, .y = together.view()});
      ASSERT_TRUE(together == alone.rows(0, m)) << m << " rows, " << part.cols << " / " << part.groups;
    }
  }
}

TEST_P(CpuFp8, EmbedReadsTheNumbersAsTheyAre) {
  TestRandom random(53);
  for (int round = 0; round < 6; ++round) {
    const TestPart part = random_fp8(random, random.integer(3, 90));
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::bf16}).value();
    std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(part.rows) - 1, 1};
    TestTensor out(DType::f32, {3, part.cols});
    cpu->ops.embed(*cpu->stream, {.ids = View::of(std::span(ids)), .table = *w, .out = out.view()});
    std::vector<float> row(static_cast<std::size_t>(part.cols));
    for (std::int64_t i = 0; i < 3; ++i) {
      dequantize(part.part(), ids[static_cast<std::size_t>(i)], row.data());
      for (std::int64_t k = 0; k < part.cols; ++k)
        ASSERT_EQ(out[i * part.cols + k], row[static_cast<std::size_t>(k)]);
    }
  }
}

TEST_P(CpuFp8, EveryCodeIsItsNumber) {
  TestPart part{.encoding = Encoding::fp8, .rows = 256, .cols = 1, .row_bytes = 1, .groups = 1};
  for (int code = 0; code < 256; ++code) part.bytes.push_back(static_cast<std::uint8_t>(code));
  part.scales.assign(256, 1.0f);
  const std::vector<MatrixPart> parts{part.part()};
  for (const DType activation : {DType::f32, DType::bf16}) {
    const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, activation}).value();
    TestTensor x(w->activation(), {1, 1}), y(DType::f32, {1, 256});
    x.set(0, 1);
    cpu->ops.matmul(*cpu->stream, {.x = x.view(), .w = *w, .y = y.view()});
    for (int code = 0; code < 256; ++code) {
      const float expected = to_f32(Float8E4M3{static_cast<std::uint8_t>(code)});
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[code])) << code;
      } else {
        EXPECT_EQ(y[code], expected) << code;
      }
    }
  }
}

TEST_P(CpuFp8, SaysWhatItCannotDo) {
  TestRandom random(54);
  const TestPart odd = random_codes(random, Encoding::fp8, 4, 66, 2, false);
  const TestPart even = random_codes(random, Encoding::fp8, 4, 66, 1, false);
  const TestTensor plain = random.tensor(DType::bf16, {4, 66});
  const auto code = [&](const std::vector<MatrixPart>& parts) {
    return cpu->ops.prepare(*cpu->device, {parts, DType::f32}).error().code;
  };
  EXPECT_EQ(code({odd.part()}), ErrorCode::unsupported);
  EXPECT_EQ(code({even.part(), odd.part()}), ErrorCode::unsupported);
  EXPECT_EQ(code({even.part(), {.values = plain.view()}}), ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
