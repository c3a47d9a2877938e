// Images for LLaVA-NeXT and LLaVA-OneVision (Liu et al., "LLaVA-NeXT", 2024; Li et al., "LLaVA-OneVision",
// 2024). First the whole image, stretched to a square tile; then tiles of the image, scaled to fit one of
// several grids, centred, on black. Equals LlavaNextImageProcessorPil and LlavaOnevisionImageProcessorPil of
// transformers.
#pragma once

#include <vector>

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Selects the grid that shows most of the image's pixels and, of those, wastes the fewest. width and height:
// size of the image in it. Error: the image's aspect ratio leaves no pixels in any grid.
Result<PartGrid> pinned_tile_grid(int width, int height, const PinnedTileRule& rule);

// The whole image, then the grid's tiles row by row, stacked vertically: [tile_size, tile_size, 3] each.
Image stack_pinned_tiles(const Image& image, const PartGrid& grid, const PinnedTileRule& rule, Filter filter);

// Tokens of the grid's tiles, as one grid of tokens: those that show the image, not its padding. Also the
// size after interpolation if there are more than `tiles_most` tiles (0: no interpolation).
struct TokenGrid {
  int top = 0, left = 0, rows = 0, columns = 0;
  int out_rows = 0, out_columns = 0;
};
// width, height: the image's size. side: tokens per side of a tile.
TokenGrid token_grid(int width, int height, const PartGrid& grid, int side, int tiles_most);

}  // namespace octavo::media
