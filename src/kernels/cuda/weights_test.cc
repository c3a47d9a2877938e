// Compares products with quantised weights on the CUDA backend with the reference.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backends.h"
#include "kernels/testing/backends.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

constexpr std::int64_t kBatches[] = {1, 5, 16, 17, 70};

class CudaWeights : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_cuda_backend();
    if (!made) GTEST_SKIP() << made.error().message;
    cuda_.emplace(*std::move(made));
  }

  WeightPtr prepare(const std::vector<MatrixPart>& parts, DType activation) {
    auto weight = cuda_->ops.prepare(*cuda_->device, {parts, activation});
    CHECK(weight.has_value(), "{}", weight.error().message);
    return *std::move(weight);
  }
  TestTensor multiply(const TestTensor& x, const Weight& w) {
    TestTensor y(DType::f32, {x.view().size(0), w.rows()});
    OnDevice on(*cuda_);
    cuda_->ops.matmul(*cuda_->stream, {.x = on(x.view()), .w = w, .y = on(y.view())});
    on.fetch();
    return y;
  }
  // `numbers_type` is the format to which the numbers of the matrix are rounded.
  TestTensor expected(const TestTensor& of_x, const std::vector<TestPart>& parts, DType numbers_type) {
    std::int64_t rows = 0;
    for (const TestPart& part : parts) rows += part.rows;
    TestTensor x(numbers_type, {of_x.view().size(0), of_x.view().size(1)});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, of_x[i]);
    TestTensor numbers(numbers_type, {rows, parts[0].cols});
    std::vector<float> row(static_cast<std::size_t>(parts[0].cols));
    std::int64_t at = 0;
    for (const TestPart& part : parts)
      for (std::int64_t r = 0; r < part.rows; ++r) {
        dequantize(part.part(), r, row.data());
        for (const float number : row) numbers.set(at++, number);
      }
    const std::vector<MatrixPart> plain{{.values = numbers.view()}};
    const WeightPtr w = reference_.ops.prepare(*reference_.device, {plain, x.view().dtype}).value();
    TestTensor y(DType::f32, {x.view().size(0), rows});
    reference_.ops.matmul(*reference_.stream, {.x = x.view(), .w = *w, .y = y.view()});
    return y;
  }
  void expect_product(TestRandom& random, const std::vector<TestPart>& parts, DType activation,
                      std::int64_t m) {
    std::vector<MatrixPart> list;
    for (const TestPart& part : parts) list.push_back(part.part());
    const WeightPtr w = prepare(list, activation);
    ASSERT_EQ(w->activation(), activation);
    const TestTensor x = random.tensor(activation, {m, parts[0].cols});
    const TestTensor y = multiply(x, *w);
    // Some kernels round the dequantised numbers to the format of the activations; Hopper's kernels do not.
    const auto difference_to = [&](DType numbers) {
      return difference(y, expected(x, parts, numbers), 3e-4, 1e-4);
    };
    ASSERT_LE(std::min(difference_to(activation), difference_to(DType::f32)), 1)
        << name(parts[0].encoding) << " " << name(activation) << " " << m << " x " << w->rows() << " x "
        << w->cols() << " / " << parts[0].groups;
    const std::int64_t last = m - 1;  // The last row must have the same bits alone and among other rows.
    TestTensor alone(activation, {1, parts[0].cols});
    for (std::int64_t k = 0; k < parts[0].cols; ++k) alone.set(k, x[last * parts[0].cols + k]);
    ASSERT_TRUE(multiply(alone, *w) == y.rows(last, 1)) << name(parts[0].encoding);
  }

  std::optional<Backend> cuda_;
  Backend reference_ = make_reference_backend();
};

TEST_F(CudaWeights, ProductsAreOfTheNumbersThatCodesStandFor) {
  TestRandom random(61);
  for (const Encoding encoding : kQuantisedEncodings)
    for (const std::int64_t m : kBatches) {
      const TestPart part = random_part(random, encoding, random.integer(1, 150), random.integer(1, 1300));
      expect_product(random, {part}, random.pick({DType::f32, DType::bf16, DType::f16}), m);
    }
}

TEST_F(CudaWeights, ProductsOfFp8HaveAScaleForEachGroup) {
  TestRandom random(62);
  for (const std::int64_t groups : {1, 3})
    for (const DType activation : {DType::f32, DType::bf16, DType::f16})
      expect_product(random, {random_codes(random, Encoding::fp8, 70, 128 * groups, groups, false)},
                     activation, 18);
}

// Groups of 12 and 5 columns: the matrix becomes numbers in the format of the activations.
TEST_F(CudaWeights, GroupsMayHaveAnySize) {
  TestRandom random(67);
  for (const std::int64_t groups : {5, 12})
    for (const Encoding encoding : {Encoding::int8, Encoding::int4})
      for (const DType activation : {DType::f32, DType::bf16, DType::f16})
        expect_product(random, {random_codes(random, encoding, 30, 60, groups, random.coin())}, activation,
                       18);
}

TEST_F(CudaWeights, PartsMayDiffer) {
  TestRandom random(63);
  for (int round = 0; round < 10; ++round) {
    std::vector<TestPart> parts;
    for (int i = 0; i < 3; ++i)
      parts.push_back(random_blocks(random, random_blocks_encoding(random), random.integer(1, 30), 512));
    expect_product(random, parts, DType::bf16, 9);
  }
  const TestPart four = random_codes(random, Encoding::int4, 9, 256, 2, true);
  expect_product(random, {four, random_codes(random, Encoding::int8, 5, 256, 4, true)}, DType::bf16, 3);
}

TEST_F(CudaWeights, EmbedReadsTheNumbersAsTheyAre) {
  TestRandom random(64);
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part = random_part(random, encoding, random.integer(3, 40), random.integer(1, 900));
    const WeightPtr w = prepare({part.part()}, DType::bf16);
    std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(part.rows) - 1, 1};
    TestTensor out(DType::f32, {3, part.cols});
    OnDevice on(*cuda_);
    cuda_->ops.embed(*cuda_->stream,
                     {.ids = on(View::of(std::span(ids))), .table = *w, .out = on(out.view())});
    on.fetch();
    std::vector<float> row(static_cast<std::size_t>(part.cols));
    for (std::int64_t i = 0; i < 3; ++i) {
      dequantize(part.part(), ids[static_cast<std::size_t>(i)], row.data());
      for (std::int64_t k = 0; k < part.cols; ++k)
        ASSERT_EQ(out[i * part.cols + k], row[static_cast<std::size_t>(k)]) << name(encoding);
    }
  }
}

TEST_F(CudaWeights, ExpertsHaveCodesOfTheirOwn) {
  TestRandom random(65);
  constexpr std::int64_t kRows = 40, kCols = 256;
  const std::vector<std::int32_t> starts{0, 3, 3, 20};
  std::vector<WeightPtr> owned;
  std::vector<const Weight*> experts;
  for (int e = 0; e < 3; ++e) {
    const TestPart part = random_blocks(random, Encoding::q4_k, kRows, kCols);
    owned.push_back(prepare({part.part()}, DType::bf16));
    experts.push_back(owned.back().get());
  }
  const TestTensor x = random.tensor(DType::bf16, {20, kCols});
  TestTensor y(DType::bf16, {20, kRows}), each = y;
  std::vector<std::int32_t> of_host = starts;
  OnDevice on(*cuda_);
  const View xs = on(x.view()), ys = on(y.view()), each_ys = on(each.view());
  cuda_->ops.grouped_matmul(*cuda_->stream,
                            {.x = xs, .starts = on(View::of(std::span(of_host))), .w = experts, .y = ys});
  for (std::size_t e = 0; e < 3; ++e) {
    const std::int64_t first = starts[e], count = starts[e + 1] - first;
    if (count > 0)
      cuda_->ops.matmul(*cuda_->stream,
                        {.x = xs.rows(first, count), .w = *experts[e], .y = each_ys.rows(first, count)});
  }
  on.fetch();
  EXPECT_TRUE(y == each);
}

TEST_F(CudaWeights, SaysWhatItCannotDo) {
  TestRandom random(66);
  const TestPart eight = random_codes(random, Encoding::int8, 4, 64, 1, false);
  const TestPart zeros = random_codes(random, Encoding::int8, 4, 64, 1, true);
  const TestPart fp8 = random_codes(random, Encoding::fp8, 4, 64, 1, false);
  const TestTensor plain = random.tensor(DType::bf16, {4, 64});
  const auto code = [&](const std::vector<MatrixPart>& parts) {
    return cuda_->ops.prepare(*cuda_->device, {parts, DType::bf16}).error().code;
  };
  EXPECT_EQ(code({eight.part(), zeros.part()}), ErrorCode::unsupported);
  EXPECT_EQ(code({eight.part(), fp8.part()}), ErrorCode::unsupported);
  EXPECT_EQ(code({eight.part(), {.values = plain.view()}}), ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
