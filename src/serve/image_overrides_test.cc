#include "serve/image_overrides.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

Result<media::ProcessorConfig> read(auto rule, const char* json) {
  return with_overrides({.rule = rule}, boost::json::parse(json).as_object());
}

std::string field(auto rule, const char* json) {
  const auto config = read(rule, json);
  return config ? "none" : config.error().field;
}

TEST(ImageOverrides, MakeImagesSmaller) {
  const media::AnySizeRule any{.unit = 28, .pixels_min = 3136, .pixels_max = 1'003'520};
  const auto pixels = [&](const char* json) {
    const auto rule = std::get<media::AnySizeRule>(read(any, json).value().rule);
    return std::pair(rule.pixels_min, rule.pixels_max);
  };
  EXPECT_EQ(pixels("{}"), std::pair(3136L, 1'003'520L));
  EXPECT_EQ(pixels(R"({"max_pixels": 10000})"), std::pair(3136L, 10'000L));
  EXPECT_EQ(pixels(R"({"max_pixels": 1000, "min_pixels": 500})"), std::pair(500L, 1000L));
  EXPECT_EQ(pixels(R"({"size": {"shortest_edge": 784, "longest_edge": 2000}})"), std::pair(784L, 2000L));
  EXPECT_EQ(pixels(R"({"max_pixels": 784})"), std::pair(784L, 784L));
  const media::TileRule tiles{.longest_edge = 2048, .tile_size = 512};
  EXPECT_FALSE(std::get<media::TileRule>(read(tiles, R"({"do_image_splitting": false})").value().rule).split);
  EXPECT_EQ(
      std::get<media::TileRule>(read(tiles, R"({"size": {"longest_edge": 512}})").value().rule).longest_edge,
      512);
  const media::RatioTileRule ratio{.tile_size = 448, .tiles_min = 2, .tiles_max = 12};
  const auto one = std::get<media::RatioTileRule>(read(ratio, R"({"max_patches": 1})").value().rule);
  EXPECT_EQ(one.tiles_max, 1);
  EXPECT_EQ(one.tiles_min, 1);
}

TEST(ImageOverrides, ErrorsNameTheField) {
  const media::AnySizeRule any{.unit = 28, .pixels_min = 3136, .pixels_max = 1'003'520};
  EXPECT_EQ(field(any, R"({"max_pixels": 1003521})"), "mm_processor_kwargs.max_pixels");
  EXPECT_EQ(field(any, R"({"max_pixels": 783})"), "mm_processor_kwargs.max_pixels");
  EXPECT_EQ(field(any, R"({"min_pixels": 0})"), "mm_processor_kwargs.min_pixels");
  EXPECT_EQ(field(any, R"({"size": {"height": 5}})"), "mm_processor_kwargs.size.height");
  EXPECT_EQ(field(any, R"({"fps": 2})"), "mm_processor_kwargs.fps");
  EXPECT_EQ(field(any, R"({"max_patches": 2})"), "mm_processor_kwargs.max_patches");
  const media::TileRule whole{.longest_edge = 2048, .tile_size = 512, .split = false};
  EXPECT_EQ(field(whole, R"({"do_image_splitting": true})"), "mm_processor_kwargs.do_image_splitting");
  EXPECT_EQ(field(media::RatioTileRule{.tile_size = 448}, R"({"max_patches": 13})"),
            "mm_processor_kwargs.max_patches");
  EXPECT_EQ(field(media::SquareRule{.size = 336}, R"({"size": {}})"), "mm_processor_kwargs.size");
}

}  // namespace
}  // namespace octavo
