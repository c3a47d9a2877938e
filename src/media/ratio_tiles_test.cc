#include "media/ratio_tiles.h"

#include <gtest/gtest.h>

#include <array>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TEST(RatioTiles, AreThoseOfTransformers) {
  const VisionGolden golden("internvl");
  const RatioTileRule rule{.tile_size = 32, .tiles_min = 1, .tiles_max = 4};
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(picture);
    const Image image = golden.image(fmt::format("decoded.{}", picture));
    const PartGrid grid = ratio_tile_grid(image.width, image.height, rule);
    const std::vector<Image> tiles = cut_ratio_tiles(image, grid, rule, Filter::bicubic);
    const std::vector<Image> expected = golden.tiles(fmt::format("tiles.{}", picture));
    ASSERT_EQ(tiles.size(), expected.size());
    EXPECT_EQ(std::ssize(tiles), grid.parts());
    for (std::size_t i = 0; i < tiles.size(); ++i)
      EXPECT_EQ(tiles[i].pixels, expected[i].pixels) << "tile " << i;
  }
}

// Expected values: get_optimal_tiled_canvas of transformers, with tiles of 448 pixels.
TEST(RatioTiles, GridsOfRealSizes) {
  const auto grid = [](int width, int height, int most = 12) {
    const PartGrid g = ratio_tile_grid(width, height, {.tile_size = 448, .tiles_min = 1, .tiles_max = most});
    return std::pair(g.columns, g.rows);
  };
  EXPECT_EQ(grid(448, 448), std::pair(0, 0));
  EXPECT_EQ(grid(1000, 1000), std::pair(3, 3));
  EXPECT_EQ(grid(1920, 1080), std::pair(4, 2));
  EXPECT_EQ(grid(1080, 1920), std::pair(2, 4));
  EXPECT_EQ(grid(800, 600), std::pair(4, 3));
  EXPECT_EQ(grid(9000, 30), std::pair(12, 1));
  EXPECT_EQ(grid(1920, 1080, 1), std::pair(0, 0));
}

// Expected values: the processors of vLLM 0.33 for Llama Nemotron Nano VL and H2OVL.
TEST(RatioTiles, GridsByArea) {
  const auto grid = [](int width, int height) {
    const PartGrid g = ratio_tile_grid(
        width, height, {.tile_size = 512, .tiles_max = 12, .choice = RatioTileRule::Choice::area});
    return std::pair(g.columns, g.rows);
  };
  EXPECT_EQ(grid(1920, 1080), std::pair(4, 2));
  EXPECT_EQ(grid(500, 500), std::pair(0, 0));
  EXPECT_EQ(grid(3000, 1000), std::pair(6, 2));
  EXPECT_EQ(grid(512, 2000), std::pair(1, 4));
}

TEST(RatioTiles, TwoGrids) {
  const RatioTileRule rule{.tile_size = 448, .tiles_max = 6, .twice = true};
  const auto grids = [&](int width, int height) {
    const PartGrid g = ratio_tile_grid(width, height, rule);
    return std::array{g.columns, g.rows, g.more_columns, g.more_rows};
  };
  EXPECT_EQ(grids(1920, 1080), (std::array{3, 2, 2, 1}));
  EXPECT_EQ(grids(448, 1500), (std::array{2, 2, 1, 3}));
  EXPECT_EQ(grids(500, 500), (std::array{2, 2, 0, 0}));
  const RatioTileRule small{.tile_size = 4, .tiles_max = 6, .twice = true};
  const PartGrid grid = ratio_tile_grid(20, 12, small);
  EXPECT_EQ(std::ssize(cut_ratio_tiles(plain(20, 12, 7), grid, small, Filter::bicubic)), grid.parts());
}

// Expected values: get_optimal_tiled_canvas of Cohere2VisionImageProcessor, with tiles of 512 pixels.
TEST(RatioTiles, ImagesFitIntoTheGridsOfCohere) {
  const auto grid = [](int width, int height) {
    const PartGrid g = ratio_tile_grid(width, height, {.tile_size = 512, .tiles_max = 12, .fits = true});
    return std::pair(g.columns, g.rows);
  };
  EXPECT_EQ(grid(512, 512), std::pair(0, 0));
  EXPECT_EQ(grid(1000, 600), std::pair(2, 2));
  EXPECT_EQ(grid(600, 1000), std::pair(2, 2));
  EXPECT_EQ(grid(1920, 1080), std::pair(4, 3));
  EXPECT_EQ(grid(9000, 300), std::pair(12, 1));
  EXPECT_EQ(grid(100, 40), std::pair(0, 0));
  const VisionGolden golden("cohere2_vision");
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    const Image image = golden.image(fmt::format("decoded.{}", picture));
    const PartGrid parts =
        ratio_tile_grid(image.width, image.height, {.tile_size = 32, .tiles_max = 4, .fits = true});
    EXPECT_EQ(parts.parts(), std::ssize(golden.tiles(fmt::format("tiles.{}", picture)))) << picture;
  }
}

}  // namespace
}  // namespace octavo::media
