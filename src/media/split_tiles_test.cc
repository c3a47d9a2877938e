#include "media/split_tiles.h"

#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

// Expected values: Lfm2VlImageProcessor of transformers, with tokens of 12 x 12 pixels.
TEST(SplitTiles, SizesAreThoseOfTransformers) {
  const SplitTileRule rule{.whole = {.unit = 12,
                                     .pixels_min = 4 * 144,
                                     .pixels_max = 30 * 144,
                                     .growth = AnySizeRule::Growth::rounded},
                           .tiles = {.tile_size = 24, .tiles_min = 2, .tiles_max = 6},
                           .patch_size = 6};
  const auto grid = [&](int width, int height) {
    const PartGrid g = split_tile_grid(width, height, rule).value();
    return std::tuple(g.width, g.height, g.columns, g.rows);
  };
  EXPECT_EQ(grid(61, 45), std::tuple(60, 48, 0, 0));
  EXPECT_EQ(grid(5, 60), std::tuple(12, 60, 0, 0));
  EXPECT_EQ(grid(300, 200), std::tuple(72, 48, 3, 2));
  const PartGrid large = split_tile_grid(300, 200, rule).value();
  EXPECT_EQ(split_tile_tokens(large, rule), 6 * 4 + 24);
  const std::string text = split_tiles_text(large, rule, "*");
  EXPECT_TRUE(text.starts_with("<|image_start|><|img_row_1_col_1|>****<|img_row_1_col_2|>****")) << text;
  EXPECT_TRUE(text.ends_with("<|img_row_2_col_3|>****<|img_thumbnail|>************************<|image_end|>"))
      << text;
}

TEST(SplitTiles, AreThoseOfTransformers) {
  const VisionGolden golden("lfm2_vl");
  const SplitTileRule rule{.whole = {.unit = 12,
                                     .pixels_min = 4 * 144,
                                     .pixels_max = 6 * 144,
                                     .growth = AnySizeRule::Growth::rounded},
                           .tiles = {.tile_size = 24, .tiles_min = 2, .tiles_max = 6},
                           .patch_size = 6,
                           .tolerance = 1};
  const Image image = golden.image("decoded.rgb.png");
  const PartGrid grid = split_tile_grid(image.width, image.height, rule).value();
  ASSERT_GT(grid.rows * grid.columns, 1);
  const std::vector<Image> parts = cut_split_tiles(image, grid, rule, Filter::bilinear);
  std::vector<Image> expected = golden.tiles("split.tiles");
  expected.push_back(golden.tiles("split.whole")[0]);
  ASSERT_EQ(parts.size(), expected.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    EXPECT_EQ(parts[i].pixels, expected[i].pixels) << "part " << i;
}

}  // namespace
}  // namespace octavo::media
