// Images for Qwen2-VL (Wang et al., 2024): any size and shape, in whole patches. Equals
// Qwen2VLImageProcessorPil of transformers (smart_resize).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Rounds both sides to whole units. If the pixel count is then out of range, scales both sides by the same
// factor first. Error: one side is more than 200 times the other.
Result<PartGrid> any_size_grid(int width, int height, const AnySizeRule& rule);

}  // namespace octavo::media
