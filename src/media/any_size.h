// Preprocessing of images for Qwen2-VL (Wang et al., 2024): resizes an image of any size to a whole number of
// patches. Gives the same pixels as Qwen2VLImageProcessorPil of transformers (smart_resize).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Rounds both sides to multiples of rule.unit. If the number of pixels is then below rule.pixels_min or above
// rule.pixels_max, scales both sides by one factor and rounds again. Returns an error if one side is more
// than 200 times the other.
Result<PartGrid> any_size_grid(int width, int height, const AnySizeRule& rule);

}  // namespace octavo::media
