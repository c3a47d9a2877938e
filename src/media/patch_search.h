// Preprocessing of images for SigLIP 2 (Tschannen et al., 2025): one part with about the image's aspect
// ratio. Gives the same sizes as get_image_size_for_max_num_patches of transformers.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Returns the largest size, in whole patches, that has no more patches than the image, within the limits of
// the rule. Returns an error if one side is more than 200 times the other.
Result<PartGrid> patch_search_grid(int width, int height, const PatchSearchRule& rule);

}  // namespace octavo::media
