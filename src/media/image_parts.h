// What an image becomes before a model sees it: parts that its encoder takes, and the text that stands for
// them. How is a file for each kind of rule in processor_config.h.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "media/image.h"
#include "media/processor_config.h"

namespace octavo::media {

struct PartGrid {
  int width = 0;  // of the image when it is cut, in pixels
  int height = 0;
  int rows = 0;  // of tiles, beside which the whole image is a part; 0: it is the only one
  int columns = 0;

  int parts() const { return rows * columns + 1; }
};

// Error: one side is more than 200 times the other.
Result<> check_ratio(int width, int height);

// Error: a shape that the rule refuses.
Result<PartGrid> part_grid(int width, int height, const ProcessorConfig& config);

// The parts in their order, resized; stacked tiles are one.
std::vector<Image> cut_parts(Image image, const PartGrid& grid, const ProcessorConfig& config);

// What stands in the prompt in place of an image's placeholder; each part has so many tokens.
std::string parts_text(const PartGrid& grid, const ProcessorConfig& config, int tokens_per_part);

}  // namespace octavo::media
