// Preprocessing of images for Llama 4 (Meta, 2025). The image is scaled without distortion to fit into a grid
// of square tiles. It fills the upper left corner of the grid, and the rest is black. If the grid has several
// tiles, the whole image, stretched to one tile, comes last. Gives the same sizes as Llama4ImageProcessor of
// transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "media/image_parts.h"

namespace octavo::media {

// Selects the grid. The width and height of the result are the size of the scaled image.
PartGrid canvas_tile_grid(int width, int height, const CanvasTileRule& rule);

// Returns the tiles of the grid in row order, then the whole image.
std::vector<Image> cut_canvas_tiles(const Image& image, const PartGrid& grid, const CanvasTileRule& rule,
                                    Filter filter);

// Returns the text of the parts. `tile` is the text of a tile's tokens.
std::string canvas_tiles_text(const PartGrid& grid, std::string_view tile);

}  // namespace octavo::media
