// Preprocessing of images for LLaVA-NeXT and LLaVA-OneVision (Liu et al., "LLaVA-NeXT", 2024; Li et al.,
// "LLaVA-OneVision", 2024). The first tile is the whole image, stretched to a square. For the other tiles,
// the image is scaled to fit into one of several grids and centred on black. Gives the same pixels as
// LlavaNextImageProcessorPil and LlavaOnevisionImageProcessorPil of transformers.
#pragma once

#include <vector>

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Selects the grid that keeps the most pixels of the image and, of several such grids, the grid with the
// least padding. The width and height of the result are the size of the scaled image. Returns an error if
// every grid would shrink a side to less than one pixel.
Result<PartGrid> pinned_tile_grid(int width, int height, const PinnedTileRule& rule);

// Returns the whole image, then the tiles of the grid in row order, stacked vertically. Each tile is
// [tile_size, tile_size, 3].
Image stack_pinned_tiles(const Image& image, const PartGrid& grid, const PinnedTileRule& rule, Filter filter);

// The tokens of the grid that show the image and not padding. They form a rectangle. If the grid has more
// than `tiles_most` tiles, the tokens are interpolated to out_rows x out_columns. tiles_most 0: no
// interpolation.
struct TokenGrid {
  int top = 0, left = 0, rows = 0, columns = 0;
  int out_rows = 0, out_columns = 0;
};
// Returns the TokenGrid of an image of `width` x `height` pixels. `side` is the number of tokens along a
// tile's side.
TokenGrid token_grid(int width, int height, const PartGrid& grid, int side, int tiles_most);

}  // namespace octavo::media
