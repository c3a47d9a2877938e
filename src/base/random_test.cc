#include "base/random.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Test vectors of the paper's reference implementation (philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  const std::array<std::uint32_t, 4> zeros{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), zeros);
  const std::array<std::uint32_t, 4> ones{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0ull), ones);
}

TEST(RandomUnit, StaysInsideTheOpenInterval) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = random_unit(7, i);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace octavo
