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

TEST(AnySize, NeedlesAreRefused) {
  EXPECT_THAT(any_size_grid(201, 1, kTiny).error().message, testing::HasSubstr("201 x 1 pixels"));
  EXPECT_THAT(any_size_grid(1, 4000, kTiny).error().message,
              testing::HasSubstr("one side may be at most 200 times the other"));
}

}  // namespace
}  // namespace octavo::media
