#include "media/resize.h"

#include <gtest/gtest.h>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

TEST(Resize, IsPillowsBitForBit) {
  const VisionGolden golden("idefics3");
  const Image image = golden.image("decoded.rgb.png");
  for (const auto& [name, filter] :
       {std::pair{"lanczos", Filter::lanczos}, std::pair{"bicubic", Filter::bicubic},
        std::pair{"bilinear", Filter::bilinear}}) {
    const Image expected = golden.image(fmt::format("resized.{}", name));
    const Image resized = resize(image, expected.width, expected.height, filter);
    EXPECT_EQ(resized.width, expected.width);
    EXPECT_EQ(resized.height, expected.height);
    EXPECT_EQ(resized.pixels, expected.pixels) << name;
  }
}

TEST(Resize, OfThisSizeIsTheSame) {
  const Image image = VisionGolden("idefics3").image("decoded.alpha.png");
  EXPECT_EQ(resize(image, image.width, image.height, Filter::lanczos).pixels, image.pixels);
}

TEST(Resize, OneColourStaysIt) {
  const Image image{3, 5, std::vector<std::uint8_t>(45, 201)};
  for (const Filter filter : {Filter::bilinear, Filter::bicubic, Filter::lanczos})
    for (const auto& [width, height] : {std::pair{1, 1}, std::pair{200, 7}})
      for (const std::uint8_t value : resize(image, width, height, filter).pixels) ASSERT_EQ(value, 201);
}

}  // namespace
}  // namespace octavo::media
