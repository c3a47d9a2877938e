#include "media/padded_size.h"

#include <gtest/gtest.h>

namespace octavo::media {
namespace {

constexpr PaddedSizeRule kKimiRule{.unit = 28, .patch_size = 14, .patches_max = 16384, .side_max = 512};

// Expected values: navit_resize of transformers.
TEST(PaddedSize, SizesOfRealImages) {
  const auto size = [](int width, int height) {
    const PartGrid grid = padded_size_grid(width, height, kKimiRule).value();
    return std::pair(grid.width, grid.height);
  };
  EXPECT_EQ(size(1920, 1080), std::pair(1932, 1092));
  EXPECT_EQ(size(10, 5), std::pair(28, 28));
  EXPECT_EQ(size(9000, 100), std::pair(7168, 84));
  EXPECT_EQ(size(5000, 4000), std::pair(2016, 1624));
}

TEST(PaddedSize, TheRestIsBlack) {
  const PartGrid grid = padded_size_grid(10, 5, kKimiRule).value();
  const Image part = pad_image(plain(10, 5, 90), grid, kKimiRule, Filter::bicubic);
  const auto at = [&](std::size_t x, std::size_t y) { return part.pixels[(y * 28 + x) * 3]; };
  EXPECT_EQ(at(9, 4), 90);
  EXPECT_EQ(at(10, 4), 0);
  EXPECT_EQ(at(9, 5), 0);
}

}  // namespace
}  // namespace octavo::media
