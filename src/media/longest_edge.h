// Images as Pixtral takes them (Agrawal et al., 2024): of any size and shape, in whole patches, no side
// longer than one that is given. As PixtralImageProcessorPil of transformers does it.
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// The image shrinks until no side is longer, and both sides grow to whole units. Error: one side is more than
// 200 times the other.
Result<PartGrid> longest_edge_grid(int width, int height, const LongestEdgeRule& rule);

}  // namespace octavo::media
