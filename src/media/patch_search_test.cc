#include "media/patch_search.h"

#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TEST(PatchSearch, SizesAreThoseOfTransformers) {
  const auto size = [](int width, int height, int least, int most) {
    const PartGrid grid =
        patch_search_grid(width, height, {.unit = 16, .patches_min = least, .patches_max = most}).value();
    return std::pair(grid.width, grid.height);
  };
  EXPECT_EQ(size(640, 480, 256, 3600), std::pair(640, 480));
  EXPECT_EQ(size(100, 60, 256, 3600), std::pair(320, 192));
  EXPECT_EQ(size(4000, 3000, 256, 3600), std::pair(1104, 832));
  EXPECT_EQ(size(650, 481, 256, 3600), std::pair(640, 480));
}

TEST(PatchSearch, PixelsAreThoseOfTransformers) {
  expect_whole_images(
      VisionGolden("phi4_reasoning_vision"),
      {.rule = PatchSearchRule{.unit = 6, .patches_min = 20, .patches_max = 60}, .filter = Filter::bilinear});
}

}  // namespace
}  // namespace octavo::media
