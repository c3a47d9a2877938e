#include "media/pinned_tiles.h"

#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

PinnedTileRule next_rule(int size) {
  return {.tile_size = size, .grids = {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}}};
}

PinnedTileRule onevision_rule(int size, int most) {
  PinnedTileRule rule{.tile_size = size};
  for (int rows = 1; rows <= most; ++rows)
    for (int columns = 1; columns <= most; ++columns) rule.grids.push_back({rows, columns});
  return rule;
}

void agrees(const std::string& name, const PinnedTileRule& rule, int side, int tiles_most) {
  const VisionGolden golden(name);
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(name + " " + picture);
    const Image image = golden.image(fmt::format("decoded.{}", picture));
    const auto grid = pinned_tile_grid(image.width, image.height, rule);
    ASSERT_TRUE(grid) << grid.error().message;
    const Image stack = stack_pinned_tiles(image, *grid, rule, Filter::bicubic);
    EXPECT_EQ(stack.width, rule.tile_size);
    EXPECT_EQ(stack.height, rule.tile_size * grid->parts());
    EXPECT_EQ(stack.pixels, golden.values<std::uint8_t>(fmt::format("tiles.{}", picture)));
    const TokenGrid kept = token_grid(image.width, image.height, *grid, side, tiles_most);
    EXPECT_EQ(side * side + kept.out_rows * (kept.out_columns + 1),
              golden.tensor(fmt::format("rows.{}", picture)).shape[1]);
  }
}

TEST(PinnedTiles, AreThoseOfTransformers) {
  agrees("llava_next", next_rule(32), 4, 0);
  agrees("llava_onevision", onevision_rule(30, 3), 4, 2);
}

// Expected token counts: LlavaNextProcessor and LlavaOnevisionProcessor of transformers.
TEST(PinnedTiles, TokensOfRealSizes) {
  const auto tokens = [](int width, int height, const PinnedTileRule& rule, int side, int most) {
    const TokenGrid kept =
        token_grid(width, height, pinned_tile_grid(width, height, rule).value(), side, most);
    return side * side + kept.out_rows * (kept.out_columns + 1);
  };
  const PinnedTileRule next = next_rule(336), one = onevision_rule(384, 6);
  EXPECT_EQ(tokens(336, 336, next, 24, 0), 1176);
  EXPECT_EQ(tokens(1000, 700, next, 24, 0), 2242);
  EXPECT_EQ(tokens(1920, 1080, next, 24, 0), 1948);
  EXPECT_EQ(tokens(300, 1700, next, 24, 0), 1512);
  EXPECT_EQ(tokens(336, 336, one, 27, 9), 1485);
  EXPECT_EQ(tokens(1000, 700, one, 27, 9), 4941);
  EXPECT_EQ(tokens(1920, 1080, one, 27, 9), 7269);
  EXPECT_EQ(tokens(4000, 3000, one, 27, 9), 7309);
}

TEST(PinnedTiles, ExtremeShapesAreRefused) {
  EXPECT_FALSE(pinned_tile_grid(1, 201, next_rule(336)));
  EXPECT_TRUE(pinned_tile_grid(1, 200, next_rule(336)));
  EXPECT_FALSE(pinned_tile_grid(10, 10, {.tile_size = 336}));
}

}  // namespace
}  // namespace octavo::media
