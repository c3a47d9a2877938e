// Compares products with quantised weights with the reference, with every instruction set of this processor.
#include <gtest/gtest.h>

#include "kernels/testing/quant.h"

namespace octavo {
namespace {

constexpr std::int64_t kBatches[] = {1, 2, 5, 6, 7, 13, 64, 200};

class CpuQuant : public CpuBesideReference {};

INSTANTIATE_TEST_SUITE_P(Isa, CpuQuant, testing::ValuesIn(kCpuIsas),
                         [](const auto& test) { return std::string(name(test.param)); });

std::vector<float> numbers_of(const TestPart& part) {
  std::vector<float> all(static_cast<std::size_t>(part.rows * part.cols));
  for (std::int64_t r = 0; r < part.rows; ++r) dequantize(part.part(), r, all.data() + r * part.cols);
  return all;
}

std::int64_t x_group(const TestPart& w) {
  const bool wide = w.groups == 1 || (w.groups > 1 && w.cols / w.groups % 128 == 0);
  return wide ? 128 : 32;
}

// Returns x whose codes are exact: each group has integers up to 127, one of them 127, times a power of
// two.
TestTensor exact_x(TestRandom& random, std::int64_t m, std::int64_t cols, std::int64_t group) {
  TestTensor x(DType::f32, {m, cols});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t first = 0; first < cols; first += group) {
      const float scale = random.pick({0.25f, 0.5f, 1.0f}) / 64;
      const std::int64_t last = std::min(first + group, cols);
      for (std::int64_t k = first; k < last; ++k)
        x.set(i * cols + k, scale * static_cast<float>(random.integer(-127, 127)));
      x.set(i * cols + random.integer(static_cast<int>(first), static_cast<int>(last) - 1), 127 * scale);
    }
  return x;
}

// Returns the maximum error that int8 codes of x cause: the sum, over all elements of x, of half a step times
// the magnitude of the weight.
double rounding_bound(const TestTensor& x, const std::vector<float>& w, std::int64_t i, std::int64_t r,
                      std::int64_t cols, std::int64_t group) {
  double bound = 0;
  for (std::int64_t first = 0; first < cols; first += group) {
    double largest = 0, weights = 0;
    for (std::int64_t k = first; k < std::min(first + group, cols); ++k) {
      largest = std::max(largest, std::abs(double{x[i * cols + k]}));
      weights += std::abs(double{w[static_cast<std::size_t>(r * cols + k)]});
    }
    bound += weights * largest / 127 / 2;
  }
  return bound;
}

// Tolerance for f32 sums, relative to the sum of the magnitudes of all terms. In formats with a minimum per
// group, terms are larger than the weights suggest.
constexpr double kF32Error = 3e-4;

TEST_P(CpuQuant, IntegerSumsAreExact) {
  TestRandom random(41);
  for (const Encoding encoding : kQuantisedEncodings)
    for (const std::int64_t m : kBatches) {
      const TestPart part = random_part(random, encoding, random.integer(1, 110), random.integer(1, 2400));
      const std::vector<MatrixPart> parts{part.part()};
      const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::f32}).value();
      const WeightPtr expected_w = reference.ops.prepare(*reference.device, {parts, DType::f32}).value();
      const TestTensor x = exact_x(random, m, part.cols, x_group(part));
      TestTensor y(DType::f32, {m, part.rows}), expected = y;
      cpu->ops.matmul(*cpu->stream, {.x = x.view(), .w = *w, .y = y.view()});
      reference.ops.matmul(*reference.stream, {.x = x.view(), .w = *expected_w, .y = expected.view()});
      ASSERT_LE(difference(y, expected, kF32Error, 1e-5), 1)
          << name(encoding) << " " << m << " x " << part.rows << " x " << part.cols << " / " << part.groups;
    }
}

TEST_P(CpuQuant, ActivationsLoseAtMostHalfAStep) {
  TestRandom random(42);
  for (const Encoding encoding : kQuantisedEncodings)
    for (const std::int64_t m : {1, 7, 13}) {
      const TestPart part = random_part(random, encoding, random.integer(1, 90), random.integer(1, 1500));
      const std::vector<MatrixPart> parts{part.part()};
      const DType activation = random.pick({DType::f32, DType::bf16, DType::f16});
      const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, activation}).value();
      ASSERT_EQ(w->activation(), activation);
      const WeightPtr expected_w = reference.ops.prepare(*reference.device, {parts, activation}).value();
      const TestTensor x = random.tensor(activation, {m, part.cols}, -2, 2);
      const TestTensor bias = random.tensor(DType::f32, {part.rows});
      TestTensor y(DType::f32, {m, part.rows}), expected = y;
      cpu->ops.matmul(*cpu->stream, {x.view(), *w, bias.view(), y.view()});
      reference.ops.matmul(*reference.stream, {x.view(), *expected_w, bias.view(), expected.view()});
      const std::vector<float> numbers = numbers_of(part);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t r = 0; r < part.rows; ++r)
          ASSERT_NEAR(y[i * part.rows + r], expected[i * part.rows + r],
                      1.01 * rounding_bound(x, numbers, i, r, part.cols, x_group(part)) + kF32Error)
              << name(encoding) << " row " << i << ", output " << r;
    }
}

// Two encodings in one matrix, as in the fused projections of a Q4_K_M file.
TEST_P(CpuQuant, PartsMayDiffer) {
  TestRandom random(43);
  for (int round = 0; round < 20; ++round) {
    std::vector<TestPart> owned;
    for (int i = 0; i < 3; ++i)
      owned.push_back(random_blocks(random, random_blocks_encoding(random), random.integer(1, 70), 512));
    std::vector<MatrixPart> parts;
    std::int64_t rows = 0;
    for (const TestPart& part : owned) {
      parts.push_back(part.part());
      rows += part.rows;
    }
    const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::f32}).value();
    const WeightPtr expected_w = reference.ops.prepare(*reference.device, {parts, DType::f32}).value();
    ASSERT_EQ(w->rows(), rows);
    const TestTensor x = exact_x(random, 9, 512, 32);
    const TestTensor bias = random.tensor(DType::f32, {rows});
    TestTensor y(DType::f32, {9, rows}), expected = y;
    cpu->ops.matmul(*cpu->stream, {x.view(), *w, bias.view(), y.view()});
    reference.ops.matmul(*reference.stream, {x.view(), *expected_w, bias.view(), expected.view()});
    ASSERT_LE(difference(y, expected, kF32Error, 1e-5), 1);
  }
}

TEST_P(CpuQuant, EmbedReadsTheNumbersAsTheyAre) {
  TestRandom random(44);
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part = random_part(random, encoding, random.integer(3, 90), random.integer(1, 1500));
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::f32}).value();
    std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(part.rows) - 1, 1};
    TestTensor out(DType::f32, {3, part.cols});
    cpu->ops.embed(*cpu->stream, {.ids = View::of(std::span(ids)), .table = *w, .out = out.view()});
    const std::vector<float> numbers = numbers_of(part);
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t k = 0; k < part.cols; ++k)
        ASSERT_EQ(out[i * part.cols + k],
                  numbers[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)] * part.cols + k)])
            << name(encoding);
  }
}

TEST_P(CpuQuant, EveryInstructionSetGivesTheSameBits) {
  std::optional<Backend> least;  // first instruction set that this processor has
  for (const CpuIsa isa : kCpuIsas)
    if (auto made = make_cpu_backend({.threads = 1, .isa = isa}); made && !least)
      least.emplace(*std::move(made));
  TestRandom random(45);
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part = random_part(random, encoding, 70, 1300);
    const std::vector<MatrixPart> parts{part.part()};
    // enough rows for matrix tiles; the last tile has 5 or 19 rows
    for (const std::int64_t rows : {37, 83}) {
      const TestTensor x = random.tensor(DType::bf16, {rows, part.cols});
      const auto run = [&](Backend& backend) {
        const WeightPtr w = backend.ops.prepare(*backend.device, {parts, DType::bf16}).value();
        TestTensor y(DType::f32, {rows, part.rows});
        backend.ops.matmul(*backend.stream, {.x = x.view(), .w = *w, .y = y.view()});
        return y;
      };
      ASSERT_TRUE(run(*cpu) == run(*least)) << name(encoding) << " " << rows;
    }
  }
}

TEST_P(CpuQuant, WhatIsNotFiniteStaysSo) {
  TestRandom random(46);
  const TestPart part = random_blocks(random, Encoding::q4_k, 40, 512);
  const std::vector<MatrixPart> parts{part.part()};
  const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::f32}).value();
  TestTensor x = random.tensor(DType::f32, {3, 512});
  x.set(5, std::nanf(""));
  x.set(512 + 7, std::numeric_limits<float>::infinity());
  TestTensor y(DType::f32, {3, 40});
  cpu->ops.matmul(*cpu->stream, {.x = x.view(), .w = *w, .y = y.view()});
  for (std::int64_t r = 0; r < 40; ++r) {
    EXPECT_TRUE(std::isnan(y[r]) && std::isnan(y[40 + r]));
    EXPECT_TRUE(std::isfinite(y[80 + r]));
  }
}

// The CPU's layout may add at most 0.6 bits per number for scales, because it stores one code per number.
TEST_P(CpuQuant, IsAsLargeAsTheFile) {
  TestRandom random(47);
  constexpr std::int64_t kRows = 64, kCols = 1024;
  for (const Encoding encoding : kBlockEncodings) {
    const TestPart part = random_blocks(random, encoding, kRows, kCols);
    const std::vector<MatrixPart> parts{part.part()};
    const WeightPtr w = cpu->ops.prepare(*cpu->device, {parts, DType::f32}).value();
    const bool has_codebook = encoding >= Encoding::iq3_s && encoding <= Encoding::tq1_0;
    const double bits = has_codebook ? block_traits(encoding).bits + 0.6 : 0;
    EXPECT_LE(static_cast<double>(w->bytes()),
              std::max(1.05 * static_cast<double>(part.bytes.size()), bits / 8 * kRows * kCols))
        << name(encoding);
  }
  // A file has 17 bytes for 32 numbers; the CPU's layout has 18 bytes.
  const TestPart part = random_codes(random, Encoding::mxfp4, 64, 1024, 32, false);
  const std::vector<MatrixPart> codes{part.part()};
  EXPECT_LE(cpu->ops.prepare(*cpu->device, {codes, DType::f32}).value()->bytes(), 64 * 1024 / 32 * 18);
  // In NVFP4, a file has 9 bytes for 16 numbers; the CPU's layout has 10 bytes.
  const TestPart halves = random_codes(random, Encoding::mxfp4, 64, 1024, 64, false);
  const std::vector<MatrixPart> nvfp4{halves.part()};
  EXPECT_LE(cpu->ops.prepare(*cpu->device, {nvfp4, DType::f32}).value()->bytes(), 64 * 1024 / 16 * 10);
}

TEST_P(CpuQuant, SaysWhatItCannotDo) {
  TestRandom random(48);
  const TestPart narrow = random_codes(random, Encoding::int4, 4, 64, 4, false);
  const std::vector<MatrixPart> parts{narrow.part()};
  EXPECT_EQ(cpu->ops.prepare(*cpu->device, {parts, DType::f32}).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
