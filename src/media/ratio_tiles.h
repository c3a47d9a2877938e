// Images for InternVL (Chen et al., "How Far Are We to GPT-4V?", 2024): stretched to the grid of square tiles
// with the nearest shape and cut into tiles, then the whole image, shrunk to one tile. Equals
// GotOcr2ImageProcessorPil of transformers.
#pragma once

#include <vector>

#include "media/image_parts.h"

namespace octavo::media {

PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule);

// The grid's tiles row by row, then the whole image: [tile_size, tile_size, 3] each.
std::vector<Image> cut_ratio_tiles(const Image& image, const PartGrid& grid, const RatioTileRule& rule,
                                   Filter filter);

}  // namespace octavo::media
