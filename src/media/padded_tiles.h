// Images for Phi-4-multimodal (Abouelenin et al., "Phi-4-Mini Technical Report", 2025). The image is scaled
// to fit a grid of square tiles, at its upper left corner, on white. The grid holds the image or, if that
// needs too many tiles, has the nearest shape. Equals Phi4MultimodalImageProcessor of transformers or, with
// Pillow's resampling, the processor in the model's repository.
#pragma once

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// width and height: size of the image in the grid. Error: a side below 10 pixels there.
Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule);

// The grid's tiles row by row, stacked vertically: [tile_size, tile_size, 3] each.
Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule);

// The patches of the grid that show part of the image: a rectangle at the upper left corner.
struct PatchGrid {
  int rows = 0, columns = 0;
};
PatchGrid seen_patches(const PartGrid& grid, const PaddedTileRule& rule);

}  // namespace octavo::media
