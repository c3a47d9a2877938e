// Images for models with one fixed square size. Gives the same pixels as CLIPImageProcessorPil,
// SiglipImageProcessorPil and Gemma3ImageProcessorPil of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Returns the grid of one square. Errors: the image is cropped and one side is more than 200 times the
// other, so that the scaled image could exceed memory.
Result<PartGrid> square_grid(int width, int height, const SquareRule& rule);

Image cut_square(const Image& image, const SquareRule& rule, Filter filter);

}  // namespace octavo::media
