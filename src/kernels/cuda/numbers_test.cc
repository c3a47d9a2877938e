// Compares the kernels' conversions of single numbers with the conversions of tensor/dtype.h, bit by bit.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/mma.h"
#include "tensor/dtype.h"

namespace octavo::cuda {
namespace {

TEST(CudaNumbers, F8IsReadAsEverywhere) {
  for (int bits = 0; bits < 256; ++bits) {
    const float expected = to_f32(Float8E4M3{static_cast<std::uint8_t>(bits)});
    const float got = to_float(F8{static_cast<std::uint8_t>(bits)});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(expected)) << bits;
    }
  }
}

TEST(CudaNumbers, F8IsWrittenAsEverywhere) {
  // all exponents, with fractions near every rounding boundary
  for (std::uint32_t high = 0; high < 1 << 16; ++high)
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = std::bit_cast<float>(high << 16 | low);
      ASSERT_EQ(from_float<F8>(x).bits & 0x7f, to_f8_e4m3(x).bits & 0x7f) << x;
      ASSERT_TRUE(std::isnan(x) || from_float<F8>(x).bits == to_f8_e4m3(x).bits) << x;
    }
}

TEST(CudaNumbers, PackedNumbersKeepTheirOrder) {
  EXPECT_EQ(pack<Bf16>(1, -2), 0xc0003f80);
  EXPECT_EQ(pack<F16>(1, -2), 0xc0003c00);
}

}  // namespace
}  // namespace octavo::cuda
