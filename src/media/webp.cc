#include <webp/decode.h>

#include "media/formats.h"

namespace octavo::media {

Result<Image> decode_webp(std::span<const std::byte> file, std::int64_t pixels_max) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, file.size(), &features) != VP8_STATUS_OK)
    return invalid("", "the WebP image is broken");
  TRY_VOID(check_size(features.width, features.height, pixels_max));
  if (features.has_animation != 0) return invalid("", "the WebP image is an animation: one picture is supported");
  Image image{features.width, features.height, {}};
  const int channels = features.has_alpha != 0 ? 4 : 3;
  const int row = image.width * channels;
  image.pixels.resize(static_cast<std::size_t>(row) * static_cast<std::size_t>(image.height));
  const auto* const decoded =
      channels == 4 ? WebPDecodeRGBAInto(data, file.size(), image.pixels.data(), image.pixels.size(), row)
                    : WebPDecodeRGBInto(data, file.size(), image.pixels.data(), image.pixels.size(), row);
  if (decoded == nullptr) return invalid("", "the WebP image is broken, or ends early");
  if (channels == 4) over_white(image.pixels);
  return image;
}

}  // namespace octavo::media
