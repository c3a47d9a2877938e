// Preprocessing of images for InternVL (Chen et al., "How Far Are We to GPT-4V?", 2024). The image is
// stretched to the grid of square tiles with the nearest aspect ratio, and cut into tiles. The last part is
// the whole image, shrunk to one tile. Gives the same pixels as GotOcr2ImageProcessorPil of transformers.
#pragma once

#include <vector>

#include "media/image_parts.h"

namespace octavo::media {

PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule);

// Returns the tiles of the grid in row order, those of the other grid, and the whole image. Each part is
// [tile_size, tile_size, 3].
std::vector<Image> cut_ratio_tiles(const Image& image, const PartGrid& grid, const RatioTileRule& rule,
                                   Filter filter);

}  // namespace octavo::media
