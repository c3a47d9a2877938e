// Decodes PNG, JPEG, WebP and GIF files as Pillow does.
#pragma once

#include <array>
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

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue
inline constexpr Colour kWhiteBackground = {255, 255, 255};

// Maximum number of pixels. The limit exists because a header may claim more pixels than fit into memory.
// Pillow warns at 1.3 times this number.
inline constexpr std::int64_t kImagePixelsMax = std::int64_t{64} << 20;

// Decodes an image, or the first picture of an animation. Transparent pixels get the colour `background` (not
// in GIF files, where they have a colour). EXIF or XMP orientation is applied. Returns invalid_argument for
// an unknown format, a broken or incomplete file, more than `pixels_max` pixels (checked before memory is
// allocated), or colours other than grey, RGB, CMYK and palettes.
Result<Image> decode_image(std::span<const std::byte> file, std::int64_t pixels_max = kImagePixelsMax,
                           const Colour& background = kWhiteBackground);

}  // namespace octavo::media
