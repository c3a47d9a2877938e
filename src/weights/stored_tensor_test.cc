#include "weights/stored_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/dequantize.h"

namespace octavo {
namespace {

TEST(CheckFinite, SixteenBitFormats) {
  ThreadPool pool(1);
  const auto finite = [&](DType type, std::uint16_t bits) {
    const std::vector<std::uint16_t> values{0x1234, bits, 0x0001};
    return check_finite({.name = "t", .dtype = type, .shape = {3}, .bytes = std::as_bytes(std::span(values))},
                        pool)
        .has_value();
  };
  EXPECT_TRUE(finite(DType::bf16, 0x7f7f));
  EXPECT_FALSE(finite(DType::bf16, 0x7f80));
  EXPECT_FALSE(finite(DType::bf16, 0xffc0));
  EXPECT_TRUE(finite(DType::f16, 0x7bff));
  EXPECT_FALSE(finite(DType::f16, 0xfc00));
  EXPECT_FALSE(finite(DType::f16, 0x7e00));
}

// Sets one byte at a time to 0x7c. If the byte is the upper half of an f16 scale, the scale becomes
// infinite or NaN. check_finite() must agree with the dequantised numbers.
TEST(CheckFinite, ScalesOfEveryEncoding) {
  ThreadPool pool(1);
  for (int i = static_cast<int>(kFirstBlocks); i <= static_cast<int>(kLastBlocks); ++i) {
    const auto encoding = static_cast<Encoding>(i);
    const BlockShape block = block_shape(encoding);
    for (std::size_t at = 0; at < static_cast<std::size_t>(3 * block.bytes); ++at) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(3 * block.bytes), std::byte{0x11});
      bytes[at] = std::byte{0x7c};
      const StoredTensor tensor{
          .name = "t", .encoding = encoding, .shape = {1, 3 * block.elements}, .bytes = bytes};
      std::vector<float> numbers(static_cast<std::size_t>(3 * block.elements));
      dequantize(matrix_of(tensor), 0, numbers.data());
      const bool finite = std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
      EXPECT_EQ(check_finite(tensor, pool).has_value(), finite) << name(encoding) << " byte " << at;
    }
  }
}

TEST(StoredTensor, RowsOfBlocks) {
  std::vector<std::byte> bytes(4 * 2 * 34);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 96);
  const MatrixPart whole =
      matrix_of({.name = "t", .encoding = Encoding::q8_0, .shape = {4, 64}, .bytes = bytes});
  EXPECT_EQ(whole.rows(), 4);
  EXPECT_EQ(whole.cols(), 64);
  const MatrixPart part = whole.row_range(1, 2);
  EXPECT_EQ(part.rows(), 2);
  std::vector<float> a(64), b(64);
  dequantize(whole, 2, a.data());
  dequantize(part, 1, b.data());
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace octavo
