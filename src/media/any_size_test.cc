#include "media/any_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

const AnySizeRule kTiny{.unit = 12, .pixels_min = 12 * 12 * 12, .pixels_max = 12 * 12 * 20};

TEST(AnySize, PixelsAreThoseOfTransformers) {
  const VisionGolden golden("qwen2_vl");
  const ProcessorConfig config{.rule = kTiny, .filter = Filter::bicubic};
  expect_whole_images(golden, config);
}

// Expected values: smart_resize with Qwen2-VL's limits.
TEST(AnySize, GridsOfRealSizes) {
  const AnySizeRule rule{.unit = 28, .pixels_min = 56 * 56, .pixels_max = 28 * 28 * 1280};
  const auto grid = [&](int width, int height) {
    const PartGrid g = any_size_grid(width, height, rule).value();
    return std::pair(g.width, g.height);
  };
  EXPECT_EQ(grid(640, 480), std::pair(644, 476));
  EXPECT_EQ(grid(1920, 1080), std::pair(1316, 728));
  EXPECT_EQ(grid(70, 98), std::pair(56, 112));  // 2.5 and 3.5 units round to even numbers
  EXPECT_EQ(grid(1, 1), std::pair(56, 56));
  EXPECT_EQ(grid(900, 5), std::pair(756, 28));
  EXPECT_EQ(grid(8000, 40), std::pair(8008, 28));
}

// Expected values: smart_resize of Glm4vImageProcessor (two frames) and PaddleOCRVLImageProcessor.
TEST(AnySize, SmallImagesGrowFirst) {
  const AnySizeRule glm{.unit = 28,
                        .pixels_min = 112 * 112,
                        .pixels_max = 28 * 28 * 15000,
                        .weight = 2,
                        .rounded_weight = 2,
                        .growth = AnySizeRule::Growth::both};
  const AnySizeRule paddle{
      .unit = 28, .pixels_min = 384 * 384, .pixels_max = 1536 * 1536, .growth = AnySizeRule::Growth::in_turn};
  const auto grid = [](int width, int height, const AnySizeRule& rule) {
    const PartGrid g = any_size_grid(width, height, rule).value();
    return std::pair(g.width, g.height);
  };
  EXPECT_EQ(grid(640, 480, glm), std::pair(644, 476));
  EXPECT_EQ(grid(5000, 3000, glm), std::pair(3108, 1876));
  EXPECT_EQ(grid(10, 100, glm), std::pair(28, 280));
  EXPECT_EQ(grid(300, 7, glm), std::pair(1204, 28));
  EXPECT_EQ(grid(20, 20, glm), std::pair(84, 84));
  EXPECT_EQ(grid(5000, 3000, paddle), std::pair(1960, 1176));
  EXPECT_EQ(grid(10, 100, paddle), std::pair(140, 1232));
  EXPECT_EQ(grid(300, 7, paddle), std::pair(2520, 84));
  EXPECT_EQ(grid(20, 20, paddle), std::pair(392, 392));
}

TEST(AnySize, NeedlesAreRefused) {
  EXPECT_THAT(any_size_grid(201, 1, kTiny).error().message, testing::HasSubstr("201 x 1 pixels"));
  EXPECT_THAT(any_size_grid(1, 4000, kTiny).error().message,
              testing::HasSubstr("one side may be at most 200 times the other"));
}

}  // namespace
}  // namespace octavo::media
