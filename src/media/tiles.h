// Preprocessing of images for Idefics3 and SmolVLM (Laurençon et al., "Building and better understanding
// vision-language models", 2024; Marafioti et al., "SmolVLM", 2025). The image is cut into square tiles.
// The last part is the whole image, shrunk to one tile. Gives the same result as Idefics3ImageProcessorPil
// and Idefics3Processor of transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

PartGrid tile_grid(int width, int height, const TileRule& rule);

// Returns the tiles of the grid in row order, then the whole image. Each part is [tile_size, tile_size, 3].
std::vector<Image> cut_tiles(Image image, const PartGrid& grid, const TileRule& rule, Filter filter);

// Returns the text of all parts for the prompt. `tile` is the text of one tile's tokens.
std::string tiles_text(const PartGrid& grid, std::string_view tile);

}  // namespace octavo::media
