// Compares products on matrix tiles (emulated and, if available, on the processor) with their definition.
#include "kernels/cpu/matrix_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kWidth = 32;
constexpr float kUntouched = -12345;

class MatrixProducts : public testing::TestWithParam<const MatrixTiles*> {
 protected:
  void SetUp() override {
    if (GetParam() != &kAmxTiles) return;
    if (const auto missing = missing_for_amx(); !missing.empty()) GTEST_SKIP() << "lacks " << missing;
  }
};

INSTANTIATE_TEST_SUITE_P(Tiles, MatrixProducts, testing::Values(&kModelledTiles, &kAmxTiles),
                         [](const auto& test) { return test.param == &kAmxTiles ? "amx" : "modelled"; });

float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// Two segments of `steps` pairs. x has the blocks that MatrixTiles requires, and W is a panel.
struct Operands {
  std::int64_t rows, steps;
  TestTensor x, w;  // [rows, 2 segments, 2 * steps], [2 segments, kWidth, 2 * steps]
  std::int64_t block_steps = kMatrixSteps;

  std::int64_t blocks() const { return (steps + block_steps - 1) / block_steps; }
  std::int64_t columns() const { return 2 * block_steps; }
  float x_at(std::int64_t r, std::int64_t segment, std::int64_t k) const {
    return flushed(x[(r * 2 + segment) * 2 * steps + k]);
  }
  float w_at(std::int64_t n, std::int64_t segment, std::int64_t k) const {
    return flushed(w[(segment * kWidth + n) * 2 * steps + k]);
  }
  float expected(std::int64_t r, std::int64_t n, float c) const {
    for (std::int64_t segment = 0; segment < 2; ++segment)
      for (std::int64_t block = 0; block < blocks(); ++block) {
        float sums[2] = {0, 0};
        for (std::int64_t k = block * columns(); k < std::min((block + 1) * columns(), 2 * steps); ++k)
          // The product is exact in double, and the sum is rounded. double has more than twice the digits
          // of float, so rounding again to float does not change the result.
          sums[k % 2] = flushed(static_cast<float>(double{x_at(r, segment, k)} * double{w_at(n, segment, k)} +
                                                   double{sums[k % 2]}));
        c = flushed(flushed(c) + flushed(sums[0] + sums[1]));
      }
    return c;
  }
};

enum class Panels { bf16, e4m3 };

std::vector<float> run(const MatrixTiles& tiles, const Operands& o, std::vector<float> c, bool accumulate,
                       Panels panels = Panels::bf16) {
  const std::int64_t room = o.rows > kMatrixRows ? 32 : 16, columns = o.columns();
  const std::int64_t element = panels == Panels::e4m3 ? 1 : 2, step_bytes = kWidth * 2 * element;
  std::vector<BFloat16> x(static_cast<std::size_t>(2 * o.blocks() * columns * room), BFloat16{0});
  std::vector<std::byte> w(static_cast<std::size_t>(2 * (o.steps + 1) * step_bytes));
  const auto put = [&](std::int64_t i, float number) {
    std::byte* const to = w.data() + i * element;
    const BFloat16 wide = to_bf16(number);
    const Float8E4M3 narrow = to_f8_e4m3(number);
    std::memcpy(to, panels == Panels::e4m3 ? static_cast<const void*>(&narrow) : &wide,
                static_cast<std::size_t>(element));
  };
  // NaN after each segment detects reads beyond the segment's end.
  for (std::int64_t i = 0; i < std::ssize(w) / element; ++i) put(i, NAN);
  for (std::int64_t segment = 0; segment < 2; ++segment)
    for (std::int64_t k = 0; k < 2 * o.steps; ++k) {
      for (std::int64_t r = 0; r < o.rows; ++r)
        x[static_cast<std::size_t>(((segment * o.blocks() + k / columns) * room + r) * columns +
                                   k % columns)] = to_bf16(o.x[(r * 2 + segment) * 2 * o.steps + k]);
      for (std::int64_t n = 0; n < kWidth; ++n)
        put(((segment * (o.steps + 1) + k / 2) * kWidth + n) * 2 + k % 2,
            o.w[(segment * kWidth + n) * 2 * o.steps + k]);
    }
  const std::byte* segments[2] = {w.data(), w.data() + (o.steps + 1) * step_bytes};
  MatrixTilesInUse in_use(&tiles);
  in_use.shape(o.rows, 2 * columns);
  const TileFunction* multiply = panels == Panels::e4m3         ? tiles.e4m3
                                 : o.block_steps == kShortSteps ? tiles.short_bf16
                                                                : tiles.bf16;
  multiply[room == 32]({.x = reinterpret_cast<const std::byte*>(x.data()),
                        .x_row_stride = 2 * columns,
                        .x_unit_stride = room * 4,
                        .w = segments,
                        .segments = 2,
                        .w_offset = 0,
                        .steps = o.steps,
                        .step_stride = step_bytes,
                        .vector_stride = step_bytes / 2,
                        .c = c.data(),
                        .c_stride = kWidth,
                        .accumulate = accumulate});
  return c;
}

TEST_P(MatrixProducts, AreThoseOfTheirDefinitionToTheBit) {
  TestRandom random(61);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rows = random.integer(1, 32), steps = random.integer(1, 70);
    // Small scales make some products or sums subnormal.
    const float scale = random.pick({1.0f, 0x1p-63f, 0x1p-120f});
    const Operands o{rows, steps, random.tensor(DType::bf16, {rows, 2, 2 * steps}, -scale, scale),
                     random.tensor(DType::bf16, {2, kWidth, 2 * steps}, -1, 1),
                     random.pick({kMatrixSteps, kShortSteps})};
    const bool accumulate = random.coin();
    std::vector<float> c(32 * kWidth, kUntouched);
    for (float& element : c) element = accumulate ? random.real(-scale, scale) : kUntouched;
    const std::vector<float> got = run(*GetParam(), o, c, accumulate);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t n = 0; n < kWidth; ++n) {
        const auto i = static_cast<std::size_t>(r * kWidth + n);
        ASSERT_EQ(got[i], o.expected(r, n, accumulate ? c[i] : 0)) << rows << " rows, " << steps << " steps";
      }
    for (auto i = static_cast<std::size_t>(rows * kWidth); i < got.size(); ++i) ASSERT_EQ(got[i], c[i]);
  }
}

TEST_P(MatrixProducts, OfE4m3AreThoseOfTheSameNumbersInBf16) {
  TestRandom random(63);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t rows = random.integer(1, 32), steps = random.integer(1, 70);
    Operands o{rows, steps, random.tensor(DType::bf16, {rows, 2, 2 * steps}, -1, 1),
               TestTensor(DType::bf16, {2, kWidth, 2 * steps})};
    for (std::int64_t i = 0; i < o.w.elements(); ++i) {
      const int magnitude = random.integer(0, 0x7e);  // 0x7f is NaN
      o.w.set(i, to_f32(Float8E4M3{static_cast<std::uint8_t>(magnitude | (random.coin() ? 0x80 : 0))}));
    }
    std::vector<float> c(32 * kWidth, kUntouched);
    const bool accumulate = random.coin();
    ASSERT_EQ(run(*GetParam(), o, c, accumulate, Panels::e4m3), run(*GetParam(), o, c, accumulate))
        << rows << " rows, " << steps << " steps";
  }
}

TEST_P(MatrixProducts, SumEvenAndOddColumnsApart) {
  Operands o{1, 2, TestTensor(DType::bf16, {1, 2, 4}), TestTensor(DType::bf16, {2, kWidth, 4})};
  for (std::int64_t i = 0; i < o.w.elements(); ++i) o.w.set(i, 1);
  const float x[] = {0x1p24f, 1, 0, 1};  // 2^24 + 1 + 1 is 2^24 if the ones are added one at a time
  for (std::int64_t k = 0; k < 4; ++k) o.x.set(k, x[k]);
  EXPECT_EQ(run(*GetParam(), o, std::vector<float>(32 * kWidth), false)[0], 0x1p24f + 2);
}

// All scales are 1. int8 subtracts a zero point of 128 from its codes, and int8_zero subtracts nothing here.
TEST_P(MatrixProducts, OfCodesAreExact) {
  TestRandom random(62);
  for (int round = 0; round < 60; ++round) {
    const bool signed_codes = random.coin();
    const QuantKind kind = signed_codes ? QuantKind::int8 : QuantKind::int8_zero;
    const QuantParts& parts = GetParam()->quant_parts[static_cast<int>(kind)];
    const std::int64_t rows =
        random.coin() ? random.integer(1, 32) : 32 * random.integer(1, 2) + random.integer(17, 32);
    const std::int64_t all_rows = (rows + 31) / 32 * 32, columns = random.pick<std::int64_t>({32, 64});
    const std::int64_t shared = columns / kQuantGroup * random.integer(1, 2);
    const std::int64_t groups = columns / kQuantGroup * random.integer(1, 5), all = groups * kQuantGroup;
    const std::int64_t stride = all + random.integer(0, 40);
    std::vector<std::int8_t> x(static_cast<std::size_t>(all_rows * stride));
    const std::int64_t header = quant_header_bytes(kWidth, signed_codes ? 4 : 5);
    std::vector<std::uint8_t> block(static_cast<std::size_t>(header + all * kWidth), 0);
    for (auto& code : x) code = static_cast<std::int8_t>(random.integer(-128, 127));
    for (std::int64_t i = header; i < header + all * kWidth; ++i)
      block[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(random.integer(0, 255));
    const std::vector<float> ones(kWidth, 1.0f);
    std::copy_n(reinterpret_cast<const std::uint8_t*>(ones.data()), kWidth * 4, block.begin());
    TileScales one_scale{};
    std::ranges::fill(one_scale.scale, 1.0f);
    const std::vector<TileScales> scales(static_cast<std::size_t>(all_rows / 32 * groups), one_scale);
    const auto* group = reinterpret_cast<const std::byte*>(block.data()) + header;
    std::vector<std::byte> codes(static_cast<std::size_t>(all * kWidth));
    parts.codes(group, groups, codes.data());
    std::vector<float> c(static_cast<std::size_t>(all_rows * kWidth), kUntouched);
    MatrixTilesInUse in_use(GetParam());
    in_use.shape(std::min<std::int64_t>(rows, 32), columns);
    parts.product({.x = reinterpret_cast<const std::byte*>(x.data()),
                   .x_row_stride = stride,
                   .x_tile_stride = 32 * stride,
                   .scales = scales.data(),
                   .scales_tile_stride = groups,
                   .w = codes.data(),
                   .block = reinterpret_cast<const std::byte*>(block.data()),
                   .block_bytes = 0,
                   .block_groups = groups,
                   .first_group = 0,
                   .groups = groups,
                   .shared = shared,
                   .columns = columns,
                   .rows = rows,
                   .c = c.data(),
                   .c_stride = kWidth,
                   .ahead = group,
                   .ahead_bytes = 0});
    for (std::int64_t r = 0; r < all_rows; ++r)
      for (std::int64_t n = 0; n < kWidth; ++n) {
        std::int32_t sum = 0;
        for (std::int64_t k = 0; r < rows && k < all; ++k)
          sum += x[static_cast<std::size_t>(r * stride + k)] *
                 (block[static_cast<std::size_t>(header + (k / 4 * kWidth + n) * 4 + k % 4)] -
                  (signed_codes ? 128 : 0));
        const float expected = r < rows ? kUntouched + static_cast<float>(sum) : kUntouched;
        ASSERT_EQ(c[static_cast<std::size_t>(r * kWidth + n)], expected) << rows << " x " << all;
      }
  }
}

TEST_P(MatrixProducts, WhatIsNotFiniteStaysSo) {
  Operands o{2, 1, TestTensor(DType::bf16, {2, 2, 2}), TestTensor(DType::bf16, {2, kWidth, 2})};
  o.x.set(0, INFINITY);
  o.x.set(4, 1);
  o.w.set(0, 1);
  o.w.set(2, NAN);
  const std::vector<float> got = run(*GetParam(), o, std::vector<float>(32 * kWidth), false);
  EXPECT_EQ(got[0], INFINITY);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_TRUE(std::isnan(got[2]));  // infinity times 0
  EXPECT_EQ(got[kWidth], 1);
  EXPECT_TRUE(std::isnan(got[kWidth + 1]));
  EXPECT_EQ(got[kWidth + 2], 0);
}

// Single rows must use tiles too, because vectors would give the sum 2^24.
TEST(MatrixProduct, IsThatOfTheBackendForAnyRows) {
  for (const CpuIsa isa : {CpuIsa::amx_modelled, CpuIsa::amx}) {
    const auto backend = make_cpu_backend({.threads = 1, .isa = isa});
    if (!backend) continue;
    for (const std::int64_t cols : {4, 32}) {
      TestTensor w(DType::bf16, {40, cols}), x(DType::bf16, {400, cols});
      for (std::int64_t i = 0; i < w.elements(); ++i) w.set(i, 1);
      for (std::int64_t row = 0; row < 400; ++row) {
        x.set(row * cols, 0x1p24f);
        x.set(row * cols + 1, 1);
        x.set(row * cols + 3, 1);
      }
      const std::vector<MatrixPart> parts{{.values = w.view()}};
      const WeightPtr weight = backend->ops.prepare(*backend->device, {parts, DType::bf16}).value();
      for (const std::int64_t m : {1, 2, 16, 17, 33, 193, 400}) {
        TestTensor y(DType::f32, {m, 40});
        backend->ops.matmul(*backend->stream, {.x = x.view().rows(0, m), .w = *weight, .y = y.view()});
        for (std::int64_t i = 0; i < y.elements(); ++i) ASSERT_EQ(y[i], 0x1p24f + 2) << m << " x " << cols;
      }
    }
  }
}

// With many rows, columns are divided into ranges, and whole tiles of rows are multiplied together.
TEST(MatrixProduct, HasTheSameRowsInSeveralRanges) {
  for (const CpuIsa isa : {CpuIsa::amx_modelled, CpuIsa::amx}) {
    const auto backend = make_cpu_backend({.threads = 1, .isa = isa});
    if (!backend) continue;
    TestRandom random(65);
    for (const std::int64_t cols : {1056, 1040}) {
      const TestTensor w = random.tensor(DType::bf16, {70, cols}),
                       x = random.tensor(DType::bf16, {115, cols});
      const std::vector<MatrixPart> parts{{.values = w.view()}};
      const WeightPtr weight = backend->ops.prepare(*backend->device, {parts, DType::bf16}).value();
      for (const std::int64_t m : {33, 48, 49, 112, 115}) {
        TestTensor all(DType::f32, {m, 70});
        backend->ops.matmul(*backend->stream, {.x = x.view().rows(0, m), .w = *weight, .y = all.view()});
        for (std::int64_t row = 0; row < m; ++row) {
          TestTensor one(DType::f32, {1, 70});
          backend->ops.matmul(*backend->stream, {.x = x.view().rows(row, 1), .w = *weight, .y = one.view()});
          ASSERT_TRUE(all.rows(row, 1) == one) << row << " of " << m << " x " << cols;
        }
      }
    }
  }
}

// Large outputs are written past the caches. Their rows do not begin at cache lines.
TEST(MatrixProduct, HasTheSameRowsInLargeOutputs) {
  for (const CpuIsa isa : {CpuIsa::amx_modelled, CpuIsa::amx}) {
    const auto backend = make_cpu_backend({.threads = 3, .isa = isa});
    if (!backend) continue;
    constexpr std::int64_t kOutputs = 5003, kRows = 450, kCols = 64;
    TestRandom random(64);
    const TestTensor w = random.tensor(DType::bf16, {kOutputs, kCols}),
                     bias = random.tensor(DType::f32, {kOutputs});
    const TestTensor x = random.tensor(DType::bf16, {kRows, kCols});
    const std::vector<MatrixPart> parts{{.values = w.view()}};
    const WeightPtr weight = backend->ops.prepare(*backend->device, {parts, DType::bf16}).value();
    for (const DType type : {DType::f32, DType::bf16}) {
      TestTensor all(type, {kRows, kOutputs});
      backend->ops.matmul(*backend->stream, {x.view(), *weight, bias.view(), all.view()});
      for (const std::int64_t row : {0, 31, 32, 449}) {
        TestTensor one(type, {1, kOutputs});
        backend->ops.matmul(*backend->stream, {x.view().rows(row, 1), *weight, bias.view(), one.view()});
        ASSERT_TRUE(all.rows(row, 1) == one) << row;
      }
    }
  }
}

}  // namespace
}  // namespace octavo::cpu
