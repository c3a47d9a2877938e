// Images for Phi-4-multimodal (Abouelenin et al., "Phi-4-Mini Technical Report", 2025). The image is scaled
// to fit a grid of square tiles; it fills the upper left corner, the rest is white. The smallest grid that
// holds the image is used or, if this has too many tiles, the grid with the nearest aspect ratio. Equals
// Phi4MultimodalImageProcessor of transformers or, with Pillow's resampling, the processor in the model's
// repository.
#pragma once

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Selects the grid. width and height of the result are the size of the scaled image. Returns an error if one
// of them is below 10.
Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule);

// Returns the grid's tiles row by row, stacked vertically. Each is [tile_size, tile_size, 3].
Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule);

// Patches of the grid that show part of the image: a rectangle at the upper left corner.
struct PatchGrid {
  int rows = 0, columns = 0;
};
PatchGrid seen_patches(const PartGrid& grid, const PaddedTileRule& rule);

}  // namespace octavo::media
