// Preprocessing of images for LFM2-VL (Liquid AI, 2025): one part of any size or, for large images, square
// tiles and then the whole image at any size. Gives the same pixels as Lfm2VlImageProcessor of transformers.
#pragma once

#include <string>
#include <vector>

#include "media/image_parts.h"

namespace octavo::media {

// `width` and `height` of the grid are the size of the whole image after scaling.
Result<PartGrid> split_tile_grid(int width, int height, const SplitTileRule& rule);

// Returns the tiles of the grid in row order, then the whole image.
std::vector<Image> cut_split_tiles(const Image& image, const PartGrid& grid, const SplitTileRule& rule,
                                   Filter filter);

// Returns the number of tokens of all parts.
std::int64_t split_tile_tokens(const PartGrid& grid, const SplitTileRule& rule);

// Returns the text of all parts for the prompt.
std::string split_tiles_text(const PartGrid& grid, const SplitTileRule& rule, std::string_view token);

}  // namespace octavo::media
