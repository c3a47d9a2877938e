// Decoders of the formats that image.h supports. Each format has a source file.
#pragma once

#include "media/image.h"

namespace octavo::media {

// Returns an error if the image has no pixels, or more than `most` pixels.
Result<> check_size(std::int64_t width, std::int64_t height, std::int64_t most);

// Composites rgba [pixels, 4] over the colour with the rounding of Pillow's alpha_composite. Afterwards,
// `rgba` is [pixels, 3].
void over(const Colour& background, std::vector<std::uint8_t>& rgba);

Result<Image> decode_gif(std::span<const std::byte> file, std::int64_t pixels_max);
Result<Image> decode_jpeg(std::span<const std::byte> file, std::int64_t pixels_max);
Result<Image> decode_png(std::span<const std::byte> file, std::int64_t pixels_max, const Colour& background);
Result<Image> decode_webp(std::span<const std::byte> file, std::int64_t pixels_max, const Colour& background);

}  // namespace octavo::media
