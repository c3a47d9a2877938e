// Images as Idefics3 and SmolVLM take them (Laurençon et al., "Building and better understanding vision-language
// models", 2024; Marafioti et al., "SmolVLM", 2025): cut into square tiles, with the whole image, shrunk to a
// tile, behind them. As Idefics3ImageProcessorPil and Idefics3Processor of transformers do it.
#pragma once

#include <string>
#include <vector>

#include "media/image.h"
#include "media/processor_config.h"

namespace octavo::media {

struct TileGrid {
  int width = 0;   // of the image when it is cut, in pixels
  int height = 0;
  int rows = 0;    // of tiles; 0: the whole image is the only one
  int columns = 0;

  int tiles() const { return rows * columns + 1; }
};

TileGrid tile_grid(int width, int height, const ProcessorConfig& config);

// The tiles of the grid row by row, then the whole image: [tile_size, tile_size, 3] each.
std::vector<Image> cut_tiles(Image image, const TileGrid& grid, const ProcessorConfig& config);

// Stands in a prompt for an image, and for each token of a tile.
inline constexpr std::string_view kImageToken = "<image>";

// What stands in the prompt in place of an image's kImageToken.
std::string tiles_text(const TileGrid& grid, int tokens_per_tile);

}  // namespace octavo::media
