#include "weights/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tensor/dequantize.h"

namespace octavo {
namespace {

std::vector<float> random_matrix(std::int64_t rows, std::int64_t cols) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  for (float& value : values) value = normal(random);
  return values;
}

std::pair<double, double> errors(const std::vector<float>& values, const MatrixPart& part) {
  std::vector<float> row(static_cast<std::size_t>(part.cols()));
  double largest = 0, squares = 0;
  for (std::int64_t r = 0; r < part.rows(); ++r) {
    dequantize(part, r, row.data());
    for (std::size_t k = 0; k < row.size(); ++k) {
      const double error = std::abs(row[k] - values[static_cast<std::size_t>(r) * row.size() + k]);
      largest = std::max(largest, error);
      squares += error * error;
    }
  }
  return {largest, squares / static_cast<double>(values.size())};
}

TEST(Quantize, Int8IsWithinHalfAStep) {
  ThreadPool pool(2);
  std::vector<float> values = random_matrix(7, 96);
  std::fill_n(values.begin() + 3 * 96, 96, 0.0f);
  const auto made = quantize(View::of(values.data(), DType::f32, {7, 96}), Encoding::int8, pool);
  ASSERT_TRUE(made.has_value());
  for (std::int64_t r = 0; r < 7; ++r) {
    std::vector<float> row(96);
    dequantize(made->part, r, row.data());
    for (std::size_t k = 0; k < 96; ++k)
      EXPECT_LE(std::abs(row[k] - values[static_cast<std::size_t>(r) * 96 + k]),
                made->scales[static_cast<std::size_t>(r)] * 0.501f);
  }
}

TEST(Quantize, Int4IsBetterThanItsWholeRange) {
  ThreadPool pool(2);
  const std::vector<float> values = random_matrix(16, 512);
  const auto made =
      quantize(View::of(const_cast<float*>(values.data()), DType::f32, {16, 512}), Encoding::int4, pool);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->part.scales.size(1), 4);
  // A group's range is about 5.3 standard deviations. Sixteen evenly spaced levels would have a mean
  // squared error of step^2 / 12.
  const double step = 5.3 * 0.05 / 15;
  EXPECT_LT(errors(values, made->part).second, step * step / 12);
}

TEST(Quantize, ReadsAnyStrides) {
  ThreadPool pool(1);
  std::vector<float> values = random_matrix(64, 32);
  View transposed_values = View::of(values.data(), DType::f32, {64, 32});
  std::swap(transposed_values.shape[0], transposed_values.shape[1]);
  std::swap(transposed_values.stride[0], transposed_values.stride[1]);
  const auto made = quantize(transposed_values, Encoding::int8, pool);
  ASSERT_TRUE(made.has_value());
  std::vector<float> row(64);
  dequantize(made->part, 5, row.data());
  for (std::size_t k = 0; k < 64; ++k) EXPECT_NEAR(row[k], values[k * 32 + 5], made->scales[5] * 0.501f);
}

TEST(Quantize, RefusesColumnsThatTheKernelsCannotGroup) {
  ThreadPool pool(1);
  std::vector<float> values = random_matrix(2, 200);
  const auto made = quantize(View::of(values.data(), DType::f32, {2, 200}), Encoding::int4, pool);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().field, "quantization");
}

// Row lengths of SmolLM (576, 960), GPT-2 XL (1600) and others.
TEST(Quantize, GroupsOfInt4DivideEveryWidth) {
  for (const auto& [cols, groups] : {std::pair<std::int64_t, std::int64_t>{576, 6},
                                     {960, 10},
                                     {1600, 25},
                                     {1536, 12},
                                     {2048, 16},
                                     {96, 1},
                                     {160, 5}})
    EXPECT_EQ(groups_of(Encoding::int4, cols), groups) << cols;
  ThreadPool pool(1);
  const std::vector<float> values(2 * 576, 0.25f);
  const View matrix = View::of(const_cast<float*>(values.data()), DType::f32, {2, 576});
  const auto made = quantize(matrix, Encoding::int4, pool);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->part.scales.size(1), 6);
}

}  // namespace
}  // namespace octavo
