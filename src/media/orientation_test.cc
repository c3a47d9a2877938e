// Tests that images are rotated as their metadata say. ImageOps.exif_transpose of Pillow 13 gave the
// expected letters.
#include "media/orientation.h"

#include <gtest/gtest.h>

#include <array>

#include "media/testing/golden.h"

namespace octavo::media {
namespace {

using namespace std::string_literals;

// Converts text to an image, and back. Each letter is a pixel, and "/" separates rows.
Image picture(std::string_view rows) {
  Image image{static_cast<int>(rows.find('/')), 0, {}};
  for (const char c : rows)
    if (c != '/') image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(c));
  image.height = static_cast<int>(image.pixels.size()) / 3 / image.width;
  return image;
}

std::string letters(const Image& image) {
  std::string out;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    if (i > 0 && i / 3 % static_cast<std::size_t>(image.width) == 0) out += '/';
    out += static_cast<char>(image.pixels[i + 2]);
  }
  return out;
}

std::string big(std::size_t value, int size) {
  std::string out;
  for (int i = size - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}
std::string little(std::size_t value, int size) {
  const std::string out = big(value, size);
  return {out.rbegin(), out.rend()};
}

std::string exif(int orientation, bool is_little = false, std::size_t type = 3) {
  const auto number = [&](std::size_t value, int size) { return is_little ? little(value, size) : big(value, size); };
  const auto value = static_cast<std::size_t>(orientation);
  return (is_little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) +  //
         number(0x0100, 2) + number(4, 2) + number(1, 4) + number(6, 4) +           //
         number(0x0112, 2) + number(type, 2) + number(1, 4) +
         (type == 3 ? number(value, 2) + "\0\0"s : number(value, 4)) + number(0, 4);
}

TEST(Orientation, TurnsAsPillowDoes) {
  constexpr std::array kRotated = {"abc/def",  "cba/fed",  "fed/cba",  "def/abc",
                                   "ad/be/cf", "da/eb/fc", "fc/eb/da", "cf/be/ad"};
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(letters(upright(picture("abc/def"), orientation)),
              kRotated[static_cast<std::size_t>(orientation - 1)])
        << orientation;
}

TEST(Orientation, IsReadInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool is_little : {false, true})
      for (const std::size_t type : {3, 4}) {
        const std::string data = exif(orientation, is_little, type);
        EXPECT_EQ(orientation_of({.exif = data, .xmp = {}}), orientation);
        EXPECT_EQ(orientation_of({.exif = "Exif\0\0"s + data, .xmp = {}}), orientation);
      }
}

TEST(Orientation, OtherValuesAreUpright) {
  for (const int orientation : {0, 9, 255, 65535}) EXPECT_EQ(orientation_of({.exif = exif(orientation), .xmp = {}}), 1);
  // Pillow does not accept orientations of type byte.
  EXPECT_EQ(orientation_of({.exif = exif(6, false, 1), .xmp = {}}), 1);
  const std::string whole = exif(6);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const int cut = orientation_of({.exif = whole.substr(0, size), .xmp = {}});
    EXPECT_EQ(cut, size < 34 ? 1 : 6) << size;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0xFF);
    const int read = orientation_of({.exif = broken, .xmp = {}});
    EXPECT_TRUE(read >= 1 && read <= 8) << i;
  }
}

TEST(Orientation, XmpCountsWhereExifDoesNotSay) {
  EXPECT_EQ(orientation_of({.exif = {}, .xmp = R"(<rdf:Description tiff:Orientation="8"/>)"}), 8);
  EXPECT_EQ(orientation_of({.exif = {}, .xmp = "<tiff:Orientation>6</tiff:Orientation>"}), 6);
  EXPECT_EQ(orientation_of({.exif = exif(3), .xmp = R"(tiff:Orientation="8")"}), 3);
  EXPECT_EQ(orientation_of({.exif = "nonsense", .xmp = R"(tiff:Orientation="8")"}), 8);
  EXPECT_EQ(orientation_of({.exif = {}, .xmp = "tiff:Orientation"}), 1);
}

std::uint32_t crc(std::string_view bytes) {
  std::uint32_t sum = ~0U;
  for (const char c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320U : 0U);
  }
  return ~sum;
}

std::string png_chunk(const std::string& name, const std::string& data) {
  return big(data.size(), 4) + name + data + big(crc(name + data), 4);
}

std::string jpeg_segment(const std::string& data) { return "\xFF\xE1" + big(data.size() + 2, 2) + data; }

std::string webp_chunk(const std::string& name, const std::string& data) {
  return name + little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}

const std::string kXmp = R"(<x tiff:Orientation="6">)";

std::string hexadecimal(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

void expect_rotated(const std::string& file, const std::string& rotated, int orientation = 6) {
  const auto plain = decode_image(std::as_bytes(std::span(file))),
             seen = decode_image(std::as_bytes(std::span(rotated)));
  ASSERT_TRUE(plain && seen);
  const Image expected = upright(*plain, orientation);
  EXPECT_EQ(seen->width, expected.width);
  EXPECT_EQ(seen->height, expected.height);
  EXPECT_TRUE(seen->pixels == expected.pixels);
}

const std::string kFolder = std::string(kVisionRoot) + "idefics3/";

TEST(Orientation, OfJpegs) {
  const std::string file = file_bytes(kFolder + "photo.jpg"), begin = file.substr(0, 2), rest = file.substr(2);
  const auto with = [&](const std::string& segments) { return begin + segments + rest; };
  for (int orientation = 1; orientation <= 8; ++orientation)
    expect_rotated(file, with(jpeg_segment("Exif\0\0"s + exif(orientation))), orientation);
  expect_rotated(file, with(jpeg_segment("http://ns.adobe.com/xap/1.0/\0"s + kXmp)));
  const std::string data = exif(6);
  expect_rotated(file, with(jpeg_segment("Exif\0\0"s + data.substr(0, 20)) +
                            jpeg_segment("Exif\0\0"s + data.substr(20))));
  expect_rotated(file, with(jpeg_segment("Exif\0\0MM"s)), 1);
}

TEST(Orientation, OfPngs) {
  for (const char* name : {"rgb.png", "alpha.png", "palette.png"}) {
    const std::string file = file_bytes(kFolder + name);
    const std::size_t header = 8 + 25;
    const auto with = [&](const std::string& chunk) {
      return file.substr(0, header) + chunk + file.substr(header);
    };
    for (int orientation = 1; orientation <= 8; ++orientation)
      expect_rotated(file, with(png_chunk("eXIf", exif(orientation))), orientation);
    const std::string end = file.substr(0, file.size() - 12) + png_chunk("eXIf", exif(6)) + file.substr(file.size() - 12);
    expect_rotated(file, end);
    expect_rotated(file, with(png_chunk("iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + kXmp)));
    const std::string digits = hexadecimal(exif(6));
    expect_rotated(file, with(png_chunk("tEXt", "Raw profile type exif\0\nexif\n      40\n"s +
                                                    digits.substr(0, 36) + "\n" + digits.substr(36) + "\n")));
  }
}

TEST(Orientation, OfWebPs) {
  const std::string file = file_bytes(kFolder + "lossy.webp");
  const auto plain = decode_image(std::as_bytes(std::span(file)));
  ASSERT_TRUE(plain);
  const auto with = [&](char flags, const std::string& chunk) {
    const std::string size = little(static_cast<std::size_t>(plain->width - 1), 3) +
                             little(static_cast<std::size_t>(plain->height - 1), 3);
    const std::string body = "WEBP" + webp_chunk("VP8X", std::string(1, flags) + "\0\0\0"s + size) + file.substr(12) + chunk;
    return "RIFF" + little(body.size(), 4) + body;
  };
  for (int orientation = 1; orientation <= 8; ++orientation)
    expect_rotated(file, with(8, webp_chunk("EXIF", exif(orientation, true))), orientation);
  expect_rotated(file, with(4, webp_chunk("XMP ", kXmp)));
  // the header does not list the chunk, so Pillow ignores it
  expect_rotated(file, with(0, webp_chunk("EXIF", exif(6))), 1);
}

}  // namespace
}  // namespace octavo::media
