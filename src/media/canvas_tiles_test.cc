#include "media/canvas_tiles.h"

#include <gtest/gtest.h>

namespace octavo::media {
namespace {

constexpr CanvasTileRule kRule{.tile_size = 10, .tiles_max = 4};

void expect_grid(int width, int height, const PartGrid& expected) {
  const PartGrid grid = canvas_tile_grid(width, height, kRule);
  EXPECT_EQ(grid.width, expected.width);
  EXPECT_EQ(grid.height, expected.height);
  EXPECT_EQ(grid.rows, expected.rows);
  EXPECT_EQ(grid.columns, expected.columns);
}

// As get_best_fit and get_max_res_without_distortion of transformers.
TEST(CanvasTiles, SmallImagesGrowToOneTile) {
  expect_grid(5, 5, {10, 10, 0, 0});
  expect_grid(5, 4, {10, 8, 0, 0});
}

TEST(CanvasTiles, OtherImagesKeepTheirSizeOrShrink) {
  expect_grid(18, 9, {18, 9, 1, 2});
  expect_grid(40, 30, {20, 15, 2, 2});
  expect_grid(80, 10, {40, 5, 1, 4});
}

TEST(CanvasTiles, TheRestIsBlackAndTheWholeImageComesLast) {
  const Image image = plain(18, 9, 200);
  const PartGrid grid = canvas_tile_grid(18, 9, kRule);
  const std::vector<Image> tiles = cut_canvas_tiles(image, grid, kRule, Filter::bilinear);
  ASSERT_EQ(tiles.size(), 3U);
  const auto at = [&](std::size_t tile, std::size_t x, std::size_t y) {
    return tiles[tile].pixels[(y * 10 + x) * 3];
  };
  EXPECT_EQ(at(0, 9, 8), 200);
  EXPECT_EQ(at(0, 9, 9), 0);
  EXPECT_EQ(at(1, 7, 8), 200);
  EXPECT_EQ(at(1, 8, 8), 0);
  EXPECT_EQ(at(2, 9, 9), 200);
  EXPECT_EQ(cut_canvas_tiles(plain(5, 4, 9), canvas_tile_grid(5, 4, kRule), kRule, Filter::bilinear).size(),
            1U);
}

TEST(CanvasTiles, TheTextSeparatesTiles) {
  EXPECT_EQ(canvas_tiles_text({.rows = 0, .columns = 0}, "t"), "<|image_start|><|image|>t<|image_end|>");
  EXPECT_EQ(
      canvas_tiles_text({.rows = 2, .columns = 2}, "t"),
      "<|image_start|>t<|tile_x_separator|>t<|tile_y_separator|>t<|tile_x_separator|>t<|tile_y_separator|>"
      "<|image|>t<|image_end|>");
}

}  // namespace
}  // namespace octavo::media
