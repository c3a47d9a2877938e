#include <webp/decode.h>

#include <string_view>
#include <utility>

#include "media/formats.h"
#include "media/orientation.h"

namespace octavo::media {
namespace {

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

// Returns the metadata of a file in the extended format. Flags in the first chunk say which chunks are
// valid.
Metadata metadata_of(std::string_view file) {
  constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;
  constexpr unsigned kExifFlag = 8, kXmpFlag = 4;
  Metadata found;
  unsigned flags = 0;
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= file.size();) {
    const std::string_view name = file.substr(at, 4);
    const std::size_t size = little_endian(file.substr(at + 4, 4));
    at += kChunkHeader;
    if (size > file.size() - at) break;
    const std::string_view data = file.substr(at, size);
    if (name == "VP8X" && !data.empty()) flags = static_cast<unsigned char>(data[0]);
    if (name == "EXIF" && (flags & kExifFlag) != 0 && found.exif.empty()) found.exif = data;
    if (name == "XMP " && (flags & kXmpFlag) != 0 && found.xmp.empty()) found.xmp = data;
    at += size + size % 2;
  }
  return found;
}

}  // namespace

Result<Image> decode_webp(std::span<const std::byte> file, std::int64_t pixels_max,
                          const Colour& background) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, file.size(), &features) != VP8_STATUS_OK)
    return invalid("", "the WebP image is damaged");
  TRY_VOID(check_size(features.width, features.height, pixels_max));
  if (features.has_animation != 0)
    return invalid("", "the WebP image is an animation: send a single picture");
  Image image{features.width, features.height, {}};
  const int channels = features.has_alpha != 0 ? 4 : 3;
  const int row = image.width * channels;
  image.pixels.resize(static_cast<std::size_t>(row) * static_cast<std::size_t>(image.height));
  const auto* const decoded =
      channels == 4 ? WebPDecodeRGBAInto(data, file.size(), image.pixels.data(), image.pixels.size(), row)
                    : WebPDecodeRGBInto(data, file.size(), image.pixels.data(), image.pixels.size(), row);
  if (decoded == nullptr) return invalid("", "the WebP image is damaged or ends early");
  if (channels == 4) over(background, image.pixels);
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  return upright(std::move(image), orientation_of(metadata_of(bytes)));
}

}  // namespace octavo::media
