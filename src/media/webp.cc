#include <webp/decode.h>

#include <optional>
#include <string_view>
#include <utility>

#include "media/formats.h"
#include "media/orientation.h"

namespace octavo::media {
namespace {

constexpr std::size_t kChunkHeader = 8;

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

// Calls use(name, data) for each chunk of a file until it returns false.
template <class Use>
void for_each_chunk(std::string_view file, Use use) {
  constexpr std::size_t kRiffHeader = 12;
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= file.size();) {
    const std::string_view name = file.substr(at, 4);
    const std::size_t size = little_endian(file.substr(at + 4, 4));
    at += kChunkHeader;
    if (size > file.size() - at || !use(name, file.substr(at, size))) return;
    at += size + size % 2;
  }
}

// Returns the metadata of a file in the extended format. Flags in the first chunk say which chunks are
// valid.
Metadata metadata_of(std::string_view file) {
  constexpr unsigned kExifFlag = 8, kXmpFlag = 4;
  Metadata found;
  unsigned flags = 0;
  for_each_chunk(file, [&](std::string_view name, std::string_view data) {
    if (name == "VP8X" && !data.empty()) flags = static_cast<unsigned char>(data[0]);
    if (name == "EXIF" && (flags & kExifFlag) != 0 && found.exif.empty()) found.exif = data;
    if (name == "XMP " && (flags & kXmpFlag) != 0 && found.xmp.empty()) found.xmp = data;
    return true;
  });
  return found;
}

// A picture within an image, in pixels.
struct Frame {
  std::string_view data{};  // its chunks, which libwebp reads like a file
  std::size_t left = 0, top = 0;
};

// Returns the first frame of an animation.
std::optional<Frame> first_frame(std::string_view file) {
  constexpr std::size_t kFrameHeader = 16;
  std::optional<Frame> found;
  for_each_chunk(file, [&](std::string_view name, std::string_view data) {
    if (name == "ANMF" && data.size() > kFrameHeader)
      found = {.data = data.substr(kFrameHeader),
               .left = 2 * little_endian(data.substr(0, 3)),
               .top = 2 * little_endian(data.substr(3, 3))};
    return !found;
  });
  return found;
}

const std::uint8_t* start_of(std::string_view data) {
  return reinterpret_cast<const std::uint8_t*>(data.data());
}

// Decodes the first frame of an animation. As in Pillow, pixels outside of the frame are black in files
// without transparency.
Result<Image> decode_animation(std::string_view file, Image image, bool transparent,
                               const Colour& background) {
  const std::optional<Frame> frame = first_frame(file);
  WebPBitstreamFeatures features;
  if (!frame || WebPGetFeatures(start_of(frame->data), frame->data.size(), &features) != VP8_STATUS_OK ||
      frame->left + static_cast<std::size_t>(features.width) > static_cast<std::size_t>(image.width) ||
      frame->top + static_cast<std::size_t>(features.height) > static_cast<std::size_t>(image.height))
    return invalid("", "the first frame of the WebP image is damaged");
  const std::size_t row = static_cast<std::size_t>(image.width) * 4;
  image.pixels.resize(row * static_cast<std::size_t>(image.height));
  const std::size_t start = frame->top * row + frame->left * 4;
  if (WebPDecodeRGBAInto(start_of(frame->data), frame->data.size(), image.pixels.data() + start,
                         image.pixels.size() - start, static_cast<int>(row)) == nullptr)
    return invalid("", "the first frame of the WebP image is damaged or ends early");
  over(transparent ? background : Colour{}, image.pixels);
  return image;
}

}  // namespace

Result<Image> decode_webp(std::span<const std::byte> file, std::int64_t pixels_max,
                          const Colour& background) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(start_of(bytes), bytes.size(), &features) != VP8_STATUS_OK)
    return invalid("", "the WebP image is damaged");
  TRY_VOID(check_size(features.width, features.height, pixels_max));
  Image image{features.width, features.height, {}};
  if (features.has_animation != 0) {
    TRY(image, decode_animation(bytes, std::move(image), features.has_alpha != 0, background));
    return upright(std::move(image), orientation_of(metadata_of(bytes)));
  }
  const int channels = features.has_alpha != 0 ? 4 : 3;
  const int row = image.width * channels;
  image.pixels.resize(static_cast<std::size_t>(row) * static_cast<std::size_t>(image.height));
  const auto* const decoded =
      channels == 4
          ? WebPDecodeRGBAInto(start_of(bytes), bytes.size(), image.pixels.data(), image.pixels.size(), row)
          : WebPDecodeRGBInto(start_of(bytes), bytes.size(), image.pixels.data(), image.pixels.size(), row);
  if (decoded == nullptr) return invalid("", "the WebP image is damaged or ends early");
  if (channels == 4) over(background, image.pixels);
  return upright(std::move(image), orientation_of(metadata_of(bytes)));
}

}  // namespace octavo::media
