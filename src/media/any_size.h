// Images as Qwen2-VL takes them (Wang et al., 2024): of any size and shape, in whole patches. As
// Qwen2VLImageProcessorPil of transformers does it (smart_resize).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Both sides are rounded to whole units; where the image then has more or fewer pixels than it may, both
// shrink or grow alike before. Error: one side is more than 200 times the other.
Result<PartGrid> any_size_grid(int width, int height, const AnySizeRule& rule);

}  // namespace octavo::media
