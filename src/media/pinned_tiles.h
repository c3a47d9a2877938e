// The images of LLaVA-NeXT and LLaVA-OneVision (Liu et al., "LLaVA-NeXT", 2024; Li et al., "LLaVA-OneVision",
// 2024): the whole image, stretched to a square tile, then tiles of the image as large as it fits into one of
// some grids, in the middle of it, on black. As LlavaNextImageProcessorPil and
// LlavaOnevisionImageProcessorPil of transformers do it.
#pragma once

#include <vector>

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// The grid that shows most of the image's pixels and, of those, has the fewest others; width and height are
// the image's in it. Error: a ratio of its sides that no grid makes anything of.
Result<PartGrid> pinned_tile_grid(int width, int height, const PinnedTileRule& rule);

// The whole image, then the tiles of the grid row by row: one below the other, [tile_size, tile_size, 3]
// each.
Image stack_pinned_tiles(const Image& image, const PartGrid& grid, const PinnedTileRule& rule, Filter filter);

// Of the tokens of a grid's tiles, which are one grid of tokens: those that show the image and not what is
// around it, and how many there are behind an interpolation of what is more than `tiles_most` tiles (0: there
// is none).
struct TokenGrid {
  int top = 0, left = 0, rows = 0, columns = 0;
  int out_rows = 0, out_columns = 0;
};
// width, height: of the image; side: tokens of a tile's.
TokenGrid token_grid(int width, int height, const PartGrid& grid, int side, int tiles_most);

}  // namespace octavo::media
