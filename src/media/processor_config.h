// How a model wants its images: what model/image_processor.h reads of a checkpoint, as plain data.
#pragma once

#include <array>

#include "media/resize.h"

namespace octavo::media {

struct ProcessorConfig {
  int longest_edge = 0;   // an image is first made so long, in pixels
  int tile_size = 0;      // of the square tiles that it is cut into
  bool split = true;      // false: the whole image becomes one tile
  Filter filter = Filter::lanczos;
  // A channel's value v, 0 to 255, counts as (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};
};

}  // namespace octavo::media
