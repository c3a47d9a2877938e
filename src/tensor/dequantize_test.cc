// Compares each encoding with the numbers that the gguf package reads
// (tools/goldens/make_quant_goldens.py), or with the definition of the format.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <set>
#include <vector>

#include "tensor/dequantize.h"

namespace octavo {
namespace {

std::uint32_t hex(std::string_view digits) {
  return static_cast<std::uint32_t>(std::stoul(std::string(digits), nullptr, 16));
}

Encoding encoding_of(std::string_view wanted) {
  for (int i = 0; i <= static_cast<int>(Encoding::fp8); ++i)
    if (name(static_cast<Encoding>(i)) == wanted) return static_cast<Encoding>(i);
  throw std::runtime_error("no such encoding");
}

TEST(Dequantize, BlocksReadAsTheReferenceReadsThem) {
  std::ifstream file("tests/data/quant/blocks.txt");
  std::set<std::string> seen;
  std::string format, bytes, numbers;
  while (file >> format >> bytes >> numbers) {
    seen.insert(format);
    std::vector<std::uint8_t> row;
    for (std::size_t i = 0; i < bytes.size(); i += 2)
      row.push_back(static_cast<std::uint8_t>(hex(std::string_view(bytes).substr(i, 2))));
    const auto size = static_cast<std::int64_t>(row.size());
    const MatrixPart part{.encoding = encoding_of(format),
                          .values = View::of(row.data(), DType::u8, {1, size})};
    ASSERT_EQ(part.cols(), 512) << format;
    std::vector<float> got(512);
    dequantize(part, 0, got.data());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], std::bit_cast<float>(hex(std::string_view(numbers).substr(8 * i, 8))))
          << format << " " << i;
  }
  EXPECT_EQ(seen.size(), 22);
}

TEST(Dequantize, CodesWithScalesAndZeros) {
  std::vector<std::uint8_t> codes{0, 8, 15, 3, 255, 128, 0, 1};
  std::vector<float> scales{0.5f, 2, 0.25f, 1};
  std::vector<std::uint8_t> zeros{7, 9, 0, 200};
  const View values = View::of(codes.data(), DType::u8, {2, 4});
  const View groups = View::of(scales.data(), DType::f32, {2, 2});
  const auto read = [&](Encoding encoding, View with, std::int64_t row) {
    std::vector<float> out(4);
    dequantize({.encoding = encoding, .values = values, .scales = groups, .zeros = with}, row, out.data());
    return out;
  };
  EXPECT_EQ(read(Encoding::int4, {}, 0), (std::vector<float>{-4, 0, 14, -10}));
  EXPECT_EQ(read(Encoding::int8, {}, 1), (std::vector<float>{31.75f, 0, -128, -127}));
  const View with = View::of(zeros.data(), DType::u8, {2, 2});
  EXPECT_EQ(read(Encoding::int4, with, 0), (std::vector<float>{-3.5f, 0.5f, 12, -12}));
  EXPECT_EQ(read(Encoding::int8, with, 1), (std::vector<float>{63.75f, 32, -200, -199}));
}

TEST(Dequantize, CodesOfE2m1AreDoubledNumbers) {
  std::vector<std::uint8_t> codes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  float scale = 0.5f;
  std::vector<float> out(16);
  dequantize({.encoding = Encoding::mxfp4,
              .values = View::of(codes.data(), DType::u8, {1, 16}),
              .scales = View::of(&scale, DType::f32, {1, 1})},
             0, out.data());
  EXPECT_EQ(out, (std::vector<float>{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6}));
}

}  // namespace
}  // namespace octavo
