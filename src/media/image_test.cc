// Compares decoded images with Pillow's (tests/data/vision), and tests that broken files are rejected.
#include "media/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "media/testing/golden.h"

namespace octavo::media {
namespace {

using testing::ElementsAre;
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

// The pixels are (2 c, 255 - c, 7 c) with c = (3 x y + x) % 32.
TEST(Image, OfAGifFileIsItsFirstPicture) {
  constexpr const char* kInterlaced =
      "R0lGODdhGAARAIQAAAD/AAL+BwT9Dgb8FQj7HAr6Iwz5Kg74MRD3OBL2PxT1Rhb0TRjzVBryWxzxYh7waSDvcCLudyTtfibs"
      "hSjrjCrqkyzpmi7ooTDnqDLmrzTltjbkvTjjxDriyzzh0j7g2SwAAAAAGAARAEAI/wABBBAwgEABAwcQJFCwgEEDBw8gRJAw"
      "gUIFCxcAZJCwgEAHCw8QBNAwgUEBDxcgJBCwgUIDAx8ARBAwgUAFAxcQZFCwgUEHBx8gBJAwgEIBCwcANNBwgEIABxsQVBDw"
      "gEMCCwMgdFBwgUAEDwsAFFDwgEIGDwMQNJBwgUMAAwsgVNDwgUACBxMAHHBQgcMABREwfDDQgMIGAQkgXPBQgMEEDQEATDCQ"
      "gcEHCQUwLPAQgcAFBR0gDLCQgMMDARUAfPDQgcMGDRkwXLBQgcIECREgPHDQgMECBQkALLAQgMEFAQ0wDHCQgcADDQUgbDAQ"
      "gcMBCR0AEEDAAAIFDBy0c5j3Dl589+/hFVDwgEACBwMQNBBwgEEAAwsA1LN3bwAABP8A/idggAQOaAEDAmDgAAEaQGAABxIg"
      "4AEFCgBwYIILagAABxhQAAEDCBCwYYcfhjiihyCKKAABBiCgAAMOQCABBRZgoAEHHgCwYosvOgAAAhBg8GOQQwoJpJFEHgmA"
      "AxwogIEBFAgAgQcMaICABQRIsGSTT0YZEAA7";
  constexpr const char* kAnimation =
      "R0lGODlhGAARAIQAAAD/AAL+BwT9Dgb8FQj7HAr6Iwz5Kg74MRD3OBL2PxT1Rhb0TRjzVBryWxzxYh7waSDvcCLudyTtfibs"
      "hSjrjCrqkyzpmi7ooTDnqDLmrzTltjbkvTjjxDriyzzh0j7g2SH/C05FVFNDQVBFMi4wAwEAAAAh+QQABQAAACwAAAAAGAAR"
      "AAAI/wABBBAwgEABAwcQJFCwgEEDBw8gRJAwgUIFCxcAEEDAAAIFDBw0cvQIUmTHjyEPOKjAYYCCCBg+GGhAYYOABBAueCjA"
      "YIKGAAAUUPCAQAIHAxA0EHCAQQADC0GHFj0KoIGGAxQCONiAoIKABxwSWBgAoYOCCwQieFgAAELbt27jwp0rd4KBDAw+SCiA"
      "YYGHCAQuKOgAYYCFBBweCKgAwAIDARgcENAAwQAHCQg8UFDQ+HHkyQAySFhAoIOFBwgCaJjAoICHCxASCNhAoYGBDwA4YKAA"
      "gQECArl39/4dnLdv4B88dOCwQUMGDBcsVKAwQUIECA8cNGCwQEECAAIIGJRAoICBAwgSKFjAoIGDB/DiyZsHUEDBAwoZPAxA"
      "0EDCBQ4BGLAABBVo8AEBCTgwAQAIQIABgw5C+GCDE0ZIIQALWBAAAxcI0AAGAziQAQEPaFAABBsYEAEHB0jQAQAOcKAABgZQ"
      "IAAEHjCgAQIWECABjDLSaCMAEQgwAQEVGHABAhkosAEDHTjwAQQBSDAABQVYcEBAACH5BAEFAAEALAAAAAAYABEAgQr6IwAA"
      "AAAAAAAAAAgtAAEIFBhgoMGDCBMqXMhwYcGGECNKnEgRwMOKGClezMixI8eNHkNCBClS5MOAADs=";
  for (const char* text : {kInterlaced, kAnimation}) {
    const std::string file = decode_base64(text).value();
    const auto image = decode_image(bytes_of(file));
    ASSERT_TRUE(image.has_value()) << image.error().message;
    ASSERT_EQ(image->width, 24);
    ASSERT_EQ(image->height, 17);
    for (int y = 0; y < 17; ++y)
      for (int x = 0; x < 24; ++x) {
        const int c = (3 * x * y + x) % 32;
        const std::uint8_t* pixel = &image->pixels[static_cast<std::size_t>(y * 24 + x) * 3];
        ASSERT_THAT(std::vector<int>(pixel, pixel + 3), ElementsAre(2 * c, 255 - c, 7 * c)) << x << ' ' << y;
      }
    for (std::size_t size = 6; size < 400; size += 7) EXPECT_NE(error_of(file.substr(0, size)), "") << size;
    for (std::size_t i = 6; i < file.size(); ++i) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ 0x5A);
      static_cast<void>(decode_image(bytes_of(changed), 1 << 20));
    }
  }
}

// An animation of 6 x 4 pixels. Its first frame is smaller than the image, which is black outside of it.
TEST(Image, OfAnAnimatedWebpFileIsItsFirstFrame) {
  const std::string file =
      decode_base64(
          "UklGRp4AAABXRUJQVlA4WAoAAAACAAAABQAAAwAAQU5JTQYAAAAAAAAAAABBTk1GQgAAAAEAAAEAAAIAAAEAADIAAAJWUDhM"
          "KgAAAC8CQAAALyAQSCSC2J9rICFBislmZ2z+o4cDDoBCthHg0L0ep3AR/Y/lBUFOTUYoAAAAAAAAAAAABQAAAwAAMgAAAFZQ"
          "OEwPAAAALwXAAAAHEP2P/gciov8BAA==")
          .value();
  const Image image = decode_image(bytes_of(file)).value();
  ASSERT_EQ(image.width, 6);
  ASSERT_EQ(image.height, 4);
  const auto pixel = [&](std::size_t x, std::size_t y) {
    const std::uint8_t* at = &image.pixels[(y * 6 + x) * 3];
    return std::vector<int>(at, at + 3);
  };
  EXPECT_THAT(pixel(0, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(pixel(2, 2), ElementsAre(20, 40, 99));
  EXPECT_THAT(pixel(4, 3), ElementsAre(40, 60, 99));
  for (std::size_t size = 0; size < file.size() / 2; ++size)
    EXPECT_NE(error_of(file.substr(0, size)), "") << size;
}

TEST(Image, OfAPrintIsConvertedToRgb) {
  const std::string file =
      decode_base64(
          "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkK"
          "CgoKCgYICwwLCgwJCgoK/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//E"
          "ALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2"
          "Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrC"
          "w8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4EQwBNAFkASwAAPwD826/YSvpSv1cr/9k=")
          .value();
  const Image image = decode_image(bytes_of(file)).value();
  ASSERT_EQ(image.pixels.size(), 8U * 8 * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    EXPECT_NEAR(image.pixels[i], 46, 2);
    EXPECT_NEAR(image.pixels[i + 1], 190, 2);
    EXPECT_NEAR(image.pixels[i + 2], 139, 2);
  }
}

TEST(Image, OfOtherFormatsIsRefused) {
  EXPECT_THAT(error_of("BM.............."), HasSubstr("the format of the image is unknown"));
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
