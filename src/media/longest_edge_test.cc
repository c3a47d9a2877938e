#include "media/longest_edge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TEST(LongestEdge, PixelsAreThoseOfTransformers) {
  for (const auto& [name, unit] : {std::pair("mistral3", 12), std::pair("pixtral", 6)}) {
    const VisionGolden golden(name);
    const ProcessorConfig config{.rule = LongestEdgeRule{.longest = 48, .unit = unit},
                                 .filter = Filter::bicubic};
    expect_whole_images(golden, config);
  }
}

// Expected values: get_resize_output_image_size with the limits of Mistral Small 3.1.
TEST(LongestEdge, GridsOfRealSizes) {
  const LongestEdgeRule rule{.longest = 1540, .unit = 28};
  const auto grid = [&](int width, int height) {
    const PartGrid g = longest_edge_grid(width, height, rule).value();
    return std::pair(g.width, g.height);
  };
  EXPECT_EQ(grid(640, 480), std::pair(644, 504));
  EXPECT_EQ(grid(1920, 1080), std::pair(1540, 868));
  EXPECT_EQ(grid(1, 1), std::pair(28, 28));
  EXPECT_EQ(grid(1541, 8), std::pair(1540, 28));
  EXPECT_EQ(grid(3000, 15), std::pair(1540, 28));
}

TEST(LongestEdge, ATokenStandsBetweenTheRows) {
  const ProcessorConfig config{.rule = LongestEdgeRule{.longest = 48, .unit = 12},
                               .token = "[IMG]",
                               .after = "[IMG_END]",
                               .row_break = "[IMG_BREAK]"};
  EXPECT_EQ(parts_text({.width = 24, .height = 36}, config, 6),
            "[IMG][IMG][IMG_BREAK][IMG][IMG][IMG_BREAK][IMG][IMG][IMG_END]");
}

}  // namespace
}  // namespace octavo::media
