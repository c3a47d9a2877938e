// Images as InternVL takes them (Chen et al., "How Far Are We to GPT-4V?", 2024): stretched to the grid of
// square tiles that is nearest to their shape and cut into these, with the whole image, shrunk to a tile,
// behind them. As GotOcr2ImageProcessorPil of transformers does it.
#pragma once

#include <vector>

#include "media/image_parts.h"

namespace octavo::media {

PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule);

// The tiles of the grid row by row, then the whole image: [tile_size, tile_size, 3] each.
std::vector<Image> cut_ratio_tiles(const Image& image, const PartGrid& grid, const RatioTileRule& rule,
                                   Filter filter);

}  // namespace octavo::media
