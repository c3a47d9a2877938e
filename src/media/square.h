// Preprocessing of images for models with one fixed square size. Gives the same pixels as
// CLIPImageProcessorPil, SiglipImageProcessorPil and Gemma3ImageProcessorPil of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Returns a grid with one square part. Returns an error if rule.crop is true and one side is more than 200
// times the other, because the scaled image could then exceed memory.
Result<PartGrid> square_grid(int width, int height, const SquareRule& rule);

Image cut_square(const Image& image, const SquareRule& rule, Filter filter);

}  // namespace octavo::media
