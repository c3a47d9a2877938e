// Pictures from files: PNG, JPEG and WebP, as Pillow reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace octavo::media {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// A file may say that it has more pixels than any memory holds; it is believed up to this. Pillow warns of
// 1.3 times as many.
inline constexpr std::int64_t kImagePixelsMax = std::int64_t{64} << 20;

// What is transparent becomes white; pictures are turned as their EXIF or XMP data says. Errors, invalid_argument: no picture in a format above, a file that is
// broken or ends early, more than `pixels_max` pixels (known before memory is taken for them), an animation,
// colours other than grey, RGB and palettes.
Result<Image> decode_image(std::span<const std::byte> file, std::int64_t pixels_max = kImagePixelsMax);

}  // namespace octavo::media
