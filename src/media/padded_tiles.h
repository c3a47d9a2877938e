// The images of Phi-4-multimodal (Abouelenin et al., "Phi-4-Mini Technical Report", 2025): as large as they fit into a
// grid of square tiles, in its upper left corner, on white. The grid is the one that holds the image or, where that
// has too many tiles, the one of the nearest shape. As Phi4MultimodalImageProcessor of transformers does it and, with
// Pillow's resampling, the processor that comes with the model.
#pragma once

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// width and height are the image's in the grid. Error: a side of fewer than 10 pixels there.
Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule);

// The tiles of the grid row by row, one below the other: [tile_size, tile_size, 3] each.
Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule);

// Of the grid's patches: those from the upper left corner on that show some of the image.
struct PatchGrid {
  int rows = 0, columns = 0;
};
PatchGrid seen_patches(const PartGrid& grid, const PaddedTileRule& rule);

}  // namespace octavo::media
