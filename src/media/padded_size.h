// Preprocessing of images for Kimi-VL (Moonshot AI, 2025): one part of the image's own size, on black. Gives
// the same sizes as Kimi_K25ImageProcessor of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Selects the size in whole tokens. Images with too many patches, or with a side that is too long, shrink.
Result<PartGrid> padded_size_grid(int width, int height, const PaddedSizeRule& rule);

// Scales the image, which fills the upper left corner of the part. The rest is black.
Image pad_image(const Image& image, const PartGrid& grid, const PaddedSizeRule& rule, Filter filter);

}  // namespace octavo::media
