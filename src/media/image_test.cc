// Compares decoded images with Pillow's (tests/data/vision), and tests that broken files are rejected.
#include "media/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "media/testing/golden.h"

namespace octavo::media {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string error_of(const std::string& file, std::int64_t most = kImagePixelsMax) {
  const auto image = decode_image(bytes_of(file), most);
  if (image) return "";
  EXPECT_EQ(image.error().code, ErrorCode::invalid_argument);
  return image.error().message;
}

class Pictures : public testing::TestWithParam<const char*> {
 protected:
  const VisionGolden golden_{"idefics3"};
  const std::string file_ = file_bytes(golden_.directory + "/" + GetParam());
};

// Values may differ by one, because Pillow may use another version of the lossy decoders.
TEST_P(Pictures, AreThoseOfPillow) {
  const Image expected = golden_.image(fmt::format("decoded.{}", GetParam()));
  const auto image = decode_image(bytes_of(file_));
  ASSERT_TRUE(image.has_value()) << image.error().message;
  EXPECT_EQ(image->width, expected.width);
  EXPECT_EQ(image->height, expected.height);
  ASSERT_EQ(image->pixels.size(), expected.pixels.size());
  const std::string name = GetParam();
  const int allowed = name.ends_with(".jpg") || name.starts_with("lossy") ? 2 : 0;
  for (std::size_t i = 0; i < expected.pixels.size(); ++i)
    ASSERT_LE(std::abs(image->pixels[i] - expected.pixels[i]), allowed) << "value " << i;
}

TEST_P(Pictures, ThatEndEarlyAreRefused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{20}, file_.size() / 2})
    EXPECT_NE(error_of(file_.substr(0, size)), "") << size;
}

// A changed byte may lead to another image or to an error, but not to a crash.
TEST_P(Pictures, MayHoldAnyByte) {
  for (std::size_t i = 0; i < file_.size(); i += 7) {
    std::string file = file_;
    file[i] = static_cast<char>(file[i] ^ 0x5A);
    const auto image = decode_image(bytes_of(file), 1 << 20);
    if (!image) continue;
    EXPECT_EQ(std::ssize(image->pixels), std::int64_t{3} * image->width * image->height);
  }
}

TEST(Picture, TransparentPixelsGetTheBackground) {
  const VisionGolden golden("idefics3");
  for (const char* name : {"alpha.png", "alpha.webp"}) {
    const std::string file = file_bytes(golden.directory + "/" + name);
    const auto decoded = [&](const Colour& background) {
      return decode_image(bytes_of(file), kImagePixelsMax, background).value().pixels;
    };
    const std::vector<std::uint8_t> white = decoded(kWhiteBackground), dark = decoded({0, 0, 255});
    ASSERT_EQ(white.size(), dark.size());
    bool differ = false;
    for (std::size_t i = 0; i < white.size(); i += 3) {
      EXPECT_LE(dark[i], white[i]);
      EXPECT_LE(dark[i + 1], white[i + 1]);
      EXPECT_EQ(dark[i + 2], white[i + 2]);  // both backgrounds have the same blue
      differ |= dark[i] < white[i];
    }
    EXPECT_TRUE(differ) << name;
  }
}

TEST_P(Pictures, HaveALimit) { EXPECT_THAT(error_of(file_, 100), HasSubstr("the limit is 100")); }

INSTANTIATE_TEST_SUITE_P(Formats, Pictures,
                         testing::Values("rgb.png", "alpha.png", "palette.png", "photo.jpg", "grey.jpg",
                                         "progressive.jpg", "lossy.webp", "alpha.webp"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(Image, OfOtherFormatsIsRefused) {
  EXPECT_THAT(error_of("GIF89a............"), HasSubstr("the format of the image is unknown"));
  EXPECT_THAT(error_of("<svg xmlns='http://www.w3.org/2000/svg'/>"),
              HasSubstr("the format of the image is unknown"));
}

// The header of the PNG claims 65,000 x 65,000 pixels. The decoder rejects it before it allocates memory.
TEST(Image, ABombIsRefusedByItsHeader) {
  const std::string bomb =
      decode_base64(
          "iVBORw0KGgoAAAANSUhEUgAA/egAAP3oCAIAAAAtNU5dAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC")
          .value();
  EXPECT_THAT(error_of(bomb), HasSubstr("65000 x 65000 pixels, but the limit is"));
}

}  // namespace
}  // namespace octavo::media
