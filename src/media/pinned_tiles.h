// Images for LLaVA-NeXT and LLaVA-OneVision (Liu et al., "LLaVA-NeXT", 2024; Li et al., "LLaVA-OneVision",
// 2024). The first tile is the whole image, stretched to a square. For the other tiles, the image is scaled
// to fit into one of several grids, centred on black. Gives the same pixels as LlavaNextImageProcessorPil
// and LlavaOnevisionImageProcessorPil of transformers.
#pragma once

#include <vector>

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Selects the grid that keeps the most pixels of the image. Among equal grids it selects the one with the
// least padding. The grid's width and height are the size of the scaled image. Errors: every grid would
// shrink a side to less than one pixel.
Result<PartGrid> pinned_tile_grid(int width, int height, const PinnedTileRule& rule);

// Returns the whole image, then the tiles of the grid in row order, stacked vertically. Each is [tile_size,
// tile_size, 3].
Image stack_pinned_tiles(const Image& image, const PartGrid& grid, const PinnedTileRule& rule, Filter filter);

// The rectangle of the grid's tokens that show the image, without padding. If the grid has more than
// `tiles_most` tiles, the tokens are interpolated to out_rows x out_columns. tiles_most 0: never.
struct TokenGrid {
  int top = 0, left = 0, rows = 0, columns = 0;
  int out_rows = 0, out_columns = 0;
};
// Returns this rectangle. width, height: size of the image. side: number of tokens along a tile's side.
TokenGrid token_grid(int width, int height, const PartGrid& grid, int side, int tiles_most);

}  // namespace octavo::media
