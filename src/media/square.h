// Images for models with one fixed square size. Equals CLIPImageProcessorPil, SiglipImageProcessorPil and
// Gemma3ImageProcessorPil of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Error, when cropping: one side is more than 200 times the other, since the cropped part could exceed
// memory.
Result<PartGrid> square_grid(int width, int height, const SquareRule& rule);

// One part, [size, size, 3].
Image cut_square(const Image& image, const SquareRule& rule, Filter filter);

}  // namespace octavo::media
