// Turns an image into parts for the model's encoder and the text that represents them in the prompt. Each
// kind of rule in processor_config.h has a file.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "media/image.h"
#include "media/processor_config.h"

namespace octavo::media {

struct PartGrid {
  int width = 0;  // size in pixels of the image that is cut
  int height = 0;
  int rows = 0;  // rows and columns of tiles, in addition to the whole image; 0: only the whole image
  int columns = 0;

  int parts() const { return rows * columns + 1; }
};

// Error: one side is more than 200 times the other.
Result<> check_ratio(int width, int height);

// Error: the rule refuses the shape.
Result<PartGrid> part_grid(int width, int height, const ProcessorConfig& config);

// The resized parts in order; stacked tiles are one part.
std::vector<Image> cut_parts(Image image, const PartGrid& grid, const ProcessorConfig& config);

// Text that replaces an image's placeholder in the prompt; each part has tokens_per_part tokens.
std::string parts_text(const PartGrid& grid, const ProcessorConfig& config, int tokens_per_part);

}  // namespace octavo::media
