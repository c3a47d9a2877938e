// Compares MXFP4 and NVFP4 blocks with the numbers that the gguf package reads
// (tools/goldens/make_quant_goldens.py).
#include "weights/gguf_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tensor/dequantize.h"
#include "weights/gguf.h"
#include "weights/testing/gguf.h"

namespace octavo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> numbers_in(const StoredTensor& tensor) {
  ThreadPool pool(1);
  const auto matrix = unpack(tensor, pool);
  EXPECT_TRUE(matrix.has_value()) << matrix.error().message;
  if (!matrix) return {};
  std::vector<float> numbers(static_cast<std::size_t>(tensor.shape.back()));
  dequantize(matrix->part, 0, numbers.data());
  return numbers;
}

TEST(GgufBlocks, ReadAsTheReferenceReadsThem) {
  std::ifstream file("tests/data/quant/float4_blocks.txt");
  std::set<std::string> seen;
  std::string format, bytes, numbers;
  const auto number = [](std::string_view digits) {
    return static_cast<std::uint32_t>(std::stoul(std::string(digits), nullptr, 16));
  };
  while (file >> format >> bytes >> numbers) {
    seen.insert(format);
    std::vector<std::uint8_t> row;
    for (std::size_t i = 0; i < bytes.size(); i += 2)
      row.push_back(static_cast<std::uint8_t>(number(std::string_view(bytes).substr(i, 2))));
    const StoredTensor matrix = matrix_of_blocks(
        {.name = "a", .format = format, .shape = {1, 512}, .bytes = std::as_bytes(std::span(row))},
        format == "NVFP4" ? kNvfp4Blocks : kMxfp4Blocks);
    const std::vector<float> got = numbers_in(matrix);
    ASSERT_EQ(got.size(), 512);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], std::bit_cast<float>(number(std::string_view(numbers).substr(8 * i, 8))))
          << format << " " << i;
  }
  EXPECT_THAT(seen, ElementsAre("MXFP4", "NVFP4"));
}

// A stack of two matrices, each with one row, whose numbers are all 1.
GgufBuilder file_with_stack() {
  GgufBuilder file;
  const std::string block = std::string(4, '\x38') + std::string(32, '\x22');
  file.text("general.architecture", "llama").tensor("a.weight", {64, 1, 2}, 40, block + block);
  return file;
}

std::string f32s_of(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += GgufBuilder::raw(value);
  return bytes;
}

Result<std::vector<StoredTensor>> tensors_of(const std::string& file) {
  TRY(GgufContents contents, parse_gguf(std::as_bytes(std::span(file)), "x.gguf"));
  std::ranges::sort(contents.tensors, {}, &StoredTensor::name);
  TRY_VOID(join_nvfp4_scales(contents.tensors));
  return std::move(contents.tensors);
}

TEST(GgufBlocks, EachMatrixOfAStackHasItsScale) {
  const std::string file = file_with_stack()
                               .tensor("a.scale", {2}, 0, f32s_of({3, 5}))
                               .tensor("a.input_scale", {2}, 0, f32s_of({7, 7}))
                               .build();
  const auto tensors = tensors_of(file);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1);
  EXPECT_EQ(stored_bytes(tensors->front()), 2 * 36 + 2 * 4);
  EXPECT_THAT(numbers_in(slice_of(tensors->front(), 0)), Each(3));
  EXPECT_THAT(numbers_in(slice_of(tensors->front(), 1)), Each(5));
}

TEST(GgufBlocks, ScalesMayBeMissing) {
  const std::string file = file_with_stack().build();
  const auto tensors = tensors_of(file);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_THAT(numbers_in(slice_of(tensors->front(), 1)), Each(1));
}

TEST(GgufBlocks, WrongScales) {
  const std::string one = file_with_stack().tensor("a.scale", {1}, 0, f32s_of({3})).build();
  EXPECT_EQ(tensors_of(one).error().message,
            "tensor a.scale is F32 with shape [1], but the scales of an NVFP4 tensor must be F32 [2]");
  const std::string zero = file_with_stack().tensor("a.scale", {2}, 0, f32s_of({0, 1})).build();
  const auto tensors = tensors_of(zero);
  ASSERT_TRUE(tensors.has_value());
  ThreadPool pool(1);
  EXPECT_THAT(unpack(slice_of(tensors->front(), 0), pool).error().message, HasSubstr("tensor a.scale is 0"));
  std::string nan = file_with_stack().build();
  nan[nan.size() - 36] = '\x7f';
  const auto with_nan = tensors_of(nan);
  ASSERT_TRUE(with_nan.has_value());
  EXPECT_EQ(unpack(slice_of(with_nan->front(), 1), pool).error().message, "tensor a.weight contains NaN");
}

}  // namespace
}  // namespace octavo
