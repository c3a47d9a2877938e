#include "base/size_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace octavo {
namespace {

TEST(SizeText, SmallSizesAreInMegabytes) {
  EXPECT_EQ(size_text(0), "0.0 MB");
  EXPECT_EQ(size_text(11'840'000), "11.8 MB");
  EXPECT_EQ(size_text(999'900'000), "999.9 MB");
  EXPECT_EQ(size_text(std::uint64_t{1'230'000'000}), "1.23 GB");
}

}  // namespace
}  // namespace octavo
