// Preprocessing of images for Phi-4-multimodal (Abouelenin et al., "Phi-4-Mini Technical Report", 2025).
// The image is scaled to fit into a grid of square tiles. It fills the upper left corner of the grid, and
// the rest is white. The grid is the smallest one that holds the image or, if this grid has too many tiles,
// the allowed grid with the nearest aspect ratio. Gives the same pixels as Phi4MultimodalImageProcessor of
// transformers or, with Pillow's resampling, as the processor in the model's repository. With
// PaddedTileRule::centred, the tiles are those of Phi-3-vision.
#pragma once

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Selects the grid. The width and height of the result are the size of the scaled image. Returns an error
// if one side of the scaled image is below 10 pixels.
Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule);

// Returns the tiles of the grid in row order, stacked vertically. Each tile is [tile_size, tile_size, 3].
Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule);

// The patches of the grid that show the image. They form a rectangle at the upper left corner.
struct PatchGrid {
  int rows = 0, columns = 0;
};
PatchGrid seen_patches(const PartGrid& grid, const PaddedTileRule& rule);

}  // namespace octavo::media
