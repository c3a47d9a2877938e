#include "media/token_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TEST(TokenBudget, PixelsAreThoseOfTransformers) {
  const VisionGolden golden("gemma4");
  const ProcessorConfig config{.rule = TokenBudgetRule{.unit = 12, .tokens_max = 70},
                               .filter = Filter::bicubic};
  expect_whole_images(golden, config);
}

// transformers gives the values x of a patch in the order row, column, channel. Its model computes 2 * (x -
// 0.5).
TEST(TokenBudget, NumbersAreThoseOfTransformers) {
  const VisionGolden golden("gemma4");
  const std::vector<float> numbers = golden.values<float>("numbers");
  const Image image = golden.tiles("tiles.rgb.png").at(0);
  const auto patch = std::size_t{6}, width = static_cast<std::size_t>(image.width), across = width / patch;
  float most = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t channel = i % 3, x = i / 3 % patch, y = i / 3 / patch % patch,
                      index = i / 3 / patch / patch;
    const std::size_t row = index / across * patch + y, column = index % across * patch + x;
    const float own = static_cast<float>(image.pixels[(row * width + column) * 3 + channel]) / 255;
    most = std::max(most, std::abs(own - numbers[i]));
  }
  EXPECT_LE(most, 1e-6F);
}

// Expected values: get_aspect_ratio_preserving_size with Gemma 4's limits.
TEST(TokenBudget, GridsOfRealSizes) {
  const TokenBudgetRule rule{.unit = 48, .tokens_max = 280};
  const auto grid = [&](int width, int height) {
    const PartGrid g = token_budget_grid(width, height, rule).value();
    return std::pair(g.width, g.height);
  };
  EXPECT_EQ(grid(640, 480), std::pair(912, 672));
  EXPECT_EQ(grid(1920, 1080), std::pair(1056, 576));
  EXPECT_EQ(grid(1, 1), std::pair(768, 768));
  EXPECT_EQ(grid(1000, 5), std::pair(11328, 48));
  EXPECT_EQ(grid(5, 1000), std::pair(48, 11328));
  EXPECT_EQ(grid(900, 900), std::pair(768, 768));
  EXPECT_EQ(grid(200, 1), std::pair(11328, 48));
  EXPECT_EQ(grid(3, 600), std::pair(48, 11328));
  EXPECT_EQ(grid(4032, 3024), std::pair(912, 672));
}

TEST(TokenBudget, NeedlesAreRefused) {
  const TokenBudgetRule rule{.unit = 48, .tokens_max = 280};
  EXPECT_THAT(token_budget_grid(201, 1, rule).error().message, testing::HasSubstr("201 x 1 pixels"));
}

}  // namespace
}  // namespace octavo::media
