#include "media/image.h"

#include <algorithm>
#include <string_view>

#include "media/formats.h"

namespace octavo::media {

Result<> check_size(std::int64_t width, std::int64_t height, std::int64_t most) {
  if (width < 1 || height < 1) return invalid("", "the image has no pixels");
  if (width > most / height)
    return invalid("", "the image has {} x {} pixels, but the limit is {}", width, height, most);
  return {};
}

void over(const Colour& background, std::vector<std::uint8_t>& rgba) {
  std::size_t out = 0;
  for (std::size_t in = 0; in < rgba.size(); in += 4) {
    const std::uint32_t alpha = rgba[in + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t sum = (rgba[in + c] * alpha + background[c] * (255 - alpha)) * 128 + (128U << 7);
      rgba[out++] = static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8 >> 7);
    }
  }
  rgba.resize(out);
}

Result<Image> decode_image(std::span<const std::byte> file, std::int64_t pixels_max,
                           const Colour& background) {
  const std::string_view head(reinterpret_cast<const char*>(file.data()),
                              std::min<std::size_t>(file.size(), 12));
  if (head.starts_with("\xFF\xD8\xFF")) return decode_jpeg(file, pixels_max);
  if (head.starts_with("\x89PNG\r\n\x1A\n")) return decode_png(file, pixels_max, background);
  if (head.starts_with("RIFF") && head.ends_with("WEBP")) return decode_webp(file, pixels_max, background);
  if (head.starts_with("GIF87a") || head.starts_with("GIF89a")) return decode_gif(file, pixels_max);
  return invalid("", "the format of the image is unknown: send PNG, JPEG, WebP or GIF");
}

}  // namespace octavo::media
