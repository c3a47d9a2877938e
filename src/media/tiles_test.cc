#include "media/tiles.h"

#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TileRule rule_of(int longest_edge, int tile_size) {
  return {.longest_edge = longest_edge, .tile_size = tile_size};
}

void expect_tiles(const std::string& name, const TileRule& rule) {
  const VisionGolden golden(name);
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(name + "/" + picture);
    Image image = golden.image(fmt::format("decoded.{}", picture));
    const PartGrid grid = tile_grid(image.width, image.height, rule);
    const std::vector<Image> tiles = cut_tiles(std::move(image), grid, rule, Filter::lanczos);
    const std::vector<Image> expected = golden.tiles(fmt::format("tiles.{}", picture));
    ASSERT_EQ(tiles.size(), expected.size());
    EXPECT_EQ(std::ssize(tiles), grid.parts());
    for (std::size_t i = 0; i < tiles.size(); ++i)
      EXPECT_EQ(tiles[i].pixels, expected[i].pixels) << "tile " << i;
  }
}

TEST(Tiles, AreThoseOfTransformers) {
  expect_tiles("idefics3", rule_of(64, 32));
  expect_tiles("smolvlm", rule_of(90, 36));
}

// Expected values: Idefics3ImageProcessorPil.
TEST(Tiles, GridsOfRealSizes) {
  const TileRule smolvlm = rule_of(2048, 512);
  const auto grid = [&](int width, int height) {
    const PartGrid g = tile_grid(width, height, smolvlm);
    return std::pair(g.rows, g.columns);
  };
  EXPECT_EQ(grid(512, 512), std::pair(4, 4));
  EXPECT_EQ(grid(1920, 1080), std::pair(3, 4));
  EXPECT_EQ(grid(1080, 1920), std::pair(4, 3));
  EXPECT_EQ(grid(3000, 5), std::pair(1, 4));
}

TEST(Tiles, OneAloneHasNoRows) {
  TileRule rule = rule_of(32, 32);
  EXPECT_EQ(tile_grid(10, 10, rule).parts(), 1);
  EXPECT_EQ(tiles_text(tile_grid(10, 10, rule), "<image><image>"),
            "<fake_token_around_image><global-img><image><image><fake_token_around_image>");
  rule = rule_of(64, 32);
  rule.split = false;
  const Image image{50, 20, std::vector<std::uint8_t>(3000, 9)};
  const PartGrid grid = tile_grid(50, 20, rule);
  const std::vector<Image> tiles = cut_tiles(image, grid, rule, Filter::lanczos);
  ASSERT_EQ(tiles.size(), 1u);
  EXPECT_EQ(tiles[0].width, 32);
  EXPECT_EQ(tiles[0].height, 32);
}

TEST(Tiles, TextNamesRowsAndColumns) {
  EXPECT_EQ(tiles_text({.width = 64, .height = 64, .rows = 2, .columns = 1}, "<image>"),
            "<fake_token_around_image><row_1_col_1><image>\n<fake_token_around_image><row_2_col_1><image>\n\n"
            "<fake_token_around_image><global-img><image><fake_token_around_image>");
}

}  // namespace
}  // namespace octavo::media
