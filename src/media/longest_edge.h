// Preprocessing of images for Pixtral (Agrawal et al., 2024): resizes an image of any size to a whole number
// of patches, with a limit on the longer side. Gives the same pixels as PixtralImageProcessorPil of
// transformers.
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Shrinks the image until no side exceeds rule.longest, then rounds both sides up to multiples of rule.unit.
// Returns an error if one side is more than 200 times the other.
Result<PartGrid> longest_edge_grid(int width, int height, const LongestEdgeRule& rule);

}  // namespace octavo::media
