// Images for models with one fixed square size. Equals CLIPImageProcessorPil, SiglipImageProcessorPil and
// Gemma3ImageProcessorPil of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Error if the image is cropped: one side is more than 200 times the other, so that the scaled image could
// exceed memory.
Result<PartGrid> square_grid(int width, int height, const SquareRule& rule);

// Returns one part, [size, size, 3].
Image cut_square(const Image& image, const SquareRule& rule, Filter filter);

}  // namespace octavo::media
