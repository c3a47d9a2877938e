#include "media/square.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

void expect_squares(const std::string& name, const ProcessorConfig& config) {
  const VisionGolden golden(name);
  for (const char* picture : {"rgb.png", "photo.jpg", "palette.png"}) {
    SCOPED_TRACE(name + "/" + picture);
    Image image = golden.image(fmt::format("decoded.{}", picture));
    const PartGrid grid = part_grid(image.width, image.height, config).value();
    const std::vector<Image> parts = cut_parts(std::move(image), grid, config);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].pixels, golden.tiles(fmt::format("tiles.{}", picture))[0].pixels);
  }
}

TEST(Squares, AreThoseOfTransformers) {
  expect_squares("gemma3", {.rule = SquareRule{.size = 48}, .filter = Filter::bilinear});
  expect_squares("llava", {.rule = SquareRule{.size = 32, .crop = true}, .filter = Filter::bicubic});
}

TEST(Squares, AreNotCutOutOfNeedles) {
  EXPECT_THAT(part_grid(1000, 2, {.rule = SquareRule{.size = 32, .crop = true}}).error().message,
              testing::HasSubstr("1000 x 2 pixels"));
  EXPECT_TRUE(part_grid(1000, 2, {.rule = SquareRule{.size = 32}}).has_value());
}

TEST(Squares, TextHasMarksAround) {
  const ProcessorConfig config{
      .rule = SquareRule{.size = 32}, .token = "<t>", .before = "\n<b>", .after = "<e>\n"};
  EXPECT_EQ(parts_text({.width = 32, .height = 32}, config, 3), "\n<b><t><t><t><e>\n");
}

}  // namespace
}  // namespace octavo::media
