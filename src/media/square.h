// Images as models of squares of one size take them: as CLIPImageProcessorPil, SiglipImageProcessorPil and
// Gemma3ImageProcessorPil of transformers make them.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Error: to be cut, an image whose one side is more than 200 times the other: what is thrown away could be
// larger than any memory.
Result<PartGrid> square_grid(int width, int height, const SquareRule& rule);

// One part, [size, size, 3].
Image cut_square(const Image& image, const SquareRule& rule, Filter filter);

}  // namespace octavo::media
