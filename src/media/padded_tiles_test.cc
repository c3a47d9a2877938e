#include "media/padded_tiles.h"

#include <gtest/gtest.h>

#include <cmath>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

void agrees(const std::string& name, PaddedTileRule rule) {
  const VisionGolden golden(name);
  rule.tile_size = 48;
  rule.tiles_max = 3;
  rule.patch_size = 6;
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(name + " " + picture);
    const Image image = golden.image(fmt::format("decoded.{}", picture));
    const auto grid = padded_tile_grid(image.width, image.height, rule);
    ASSERT_TRUE(grid) << grid.error().message;
    const Image stack = stack_padded_tiles(image, *grid, rule);
    EXPECT_EQ(stack.height, rule.tile_size * grid->rows * grid->columns);
    EXPECT_EQ(stack.pixels, golden.values<std::uint8_t>(fmt::format("tiles.{}", picture)));
    const PatchGrid seen = seen_patches(*grid, rule);
    const auto tokens = [](int patches) { return (patches + 1) / 2; };
    EXPECT_EQ(tokens(seen.rows) * (tokens(seen.columns) + 1) + 1 + 4 * 5,
              golden.tensor(fmt::format("rows.{}", picture)).shape[1]);

    Image frame = plain(grid->columns * 48, grid->rows * 48, 0);
    for (int i = 0; i < grid->rows * grid->columns; ++i)
      paste(crop(stack, 0, i * 48, 48), i % grid->columns * 48, i / grid->columns * 48, frame);
    const std::vector<float> whole = interpolate_bicubic(frame, 48, 48), expected = golden.values<float>(fmt::format("whole.{}", picture));
    ASSERT_EQ(whole.size(), expected.size());
    float most = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)  // compares [pixels, 3] with [3, pixels]
      most = std::max(most, std::abs(whole[i] / 127.5F - 1 - expected[i % 3 * (whole.size() / 3) + i / 3]));
    EXPECT_LE(most, 1e-5F);
  }
}

TEST(PaddedTiles, AreThoseOfTransformers) { agrees("phi4_multimodal", {.as_torch = true}); }

TEST(PaddedTiles, WithPillowsResamplingThoseThatArePublished) { agrees("phi4_mm", {}); }

TEST(PaddedTiles, CentredOnesAreThoseOfPhi3Vision) {
  const PaddedTileRule rule{.tile_size = 48, .tiles_max = 3, .patch_size = 6, .centred = true};
  const VisionGolden golden("phi3_vision");
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(picture);
    const Image image = golden.image(fmt::format("decoded.{}", picture));
    const auto grid = padded_tile_grid(image.width, image.height, rule);
    ASSERT_TRUE(grid) << grid.error().message;
    EXPECT_EQ(stack_padded_tiles(image, *grid, rule).pixels,
              golden.values<std::uint8_t>(fmt::format("tiles.{}", picture)));
    EXPECT_EQ(seen_patches(*grid, rule).rows, grid->rows * 8);
  }
  const auto real =
      padded_tile_grid(1920, 1080, {.tile_size = 336, .tiles_max = 16, .patch_size = 14, .centred = true});
  ASSERT_TRUE(real);
  EXPECT_EQ((std::array{real->columns, real->rows, real->width, real->height}),
            (std::array{5, 3, 1680, 945}));
}

// Values of Phi4MultimodalImageProcessor: columns, rows, and the size of the scaled image.
TEST(PaddedTiles, GridsOfRealSizes) {
  const auto grid = [](int width, int height, int most = 36) {
    const auto g = padded_tile_grid(width, height, {.tile_size = 448, .tiles_max = most, .patch_size = 14});
    return g ? std::array{g->columns, g->rows, g->width, g->height} : std::array{0, 0, 0, 0};
  };
  EXPECT_EQ(grid(448, 448), (std::array{1, 1, 448, 448}));
  EXPECT_EQ(grid(449, 440), (std::array{2, 1, 457, 448}));
  EXPECT_EQ(grid(1920, 1080), (std::array{5, 3, 2240, 1260}));
  EXPECT_EQ(grid(1080, 1920, 12), (std::array{2, 4, 896, 1592}));
  EXPECT_EQ(grid(10'000, 30), (std::array{23, 1, 10304, 30}));
  EXPECT_EQ(grid(10'000, 2), (std::array{0, 0, 0, 0}));
}

}  // namespace
}  // namespace octavo::media
