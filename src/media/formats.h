// Decoders of image.h's formats, one file each.
#pragma once

#include "media/image.h"

namespace octavo::media {

// Error: no pixels, or more than `most`.
Result<> check_size(std::int64_t width, std::int64_t height, std::int64_t most);

// rgba: [pixels, 4]. Composites the pixels over white and leaves [pixels, 3], rounded as Pillow's
// alpha_composite does.
void over_white(std::vector<std::uint8_t>& rgba);

Result<Image> decode_jpeg(std::span<const std::byte> file, std::int64_t pixels_max);
Result<Image> decode_png(std::span<const std::byte> file, std::int64_t pixels_max);
Result<Image> decode_webp(std::span<const std::byte> file, std::int64_t pixels_max);

}  // namespace octavo::media
