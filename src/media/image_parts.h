// Cuts an image into parts for the model's vision encoder, and writes the text that represents the parts in
// the prompt. Each rule of processor_config.h has a source file.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "media/image.h"
#include "media/processor_config.h"

namespace octavo::media {

struct PartGrid {
  int width = 0;  // width in pixels after scaling, before the image is cut into parts
  int height = 0;
  // Number of rows of tiles. The tile that shows the whole image does not count; 0: it is the only part.
  int rows = 0;
  int columns = 0;
  // Size of one more grid, whose tiles come after those of the first one (RatioTileRule::twice).
  int more_rows = 0;
  int more_columns = 0;

  int parts() const { return rows * columns + more_rows * more_columns + 1; }
};

// Returns an error if one side is more than 200 times the other.
Result<> check_ratio(int width, int height);

// Returns the grid of parts for an image of this size, or an error if config.rule does not allow the size.
Result<PartGrid> part_grid(int width, int height, const ProcessorConfig& config);

// Returns the scaled parts, in order. If config.stacked(), all tiles are one part.
std::vector<Image> cut_parts(Image image, const PartGrid& grid, const ProcessorConfig& config);

// Returns the text that replaces an image's placeholder in the prompt. Each part has tokens_per_part
// tokens.
std::string parts_text(const PartGrid& grid, const ProcessorConfig& config, int tokens_per_part);

}  // namespace octavo::media
