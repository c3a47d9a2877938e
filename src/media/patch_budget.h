// Preprocessing of images for Nemotron 3 Omni (NVIDIA, 2026): one part of about the image's own size, in
// whole tokens, within limits of patches.
#pragma once

#include "media/image_parts.h"

namespace octavo::media {

// Selects the size. Images with too many patches shrink, and those with too few grow. Returns an error if one
// side is more than 200 times the other.
Result<PartGrid> patch_budget_grid(int width, int height, const PatchBudgetRule& rule);

}  // namespace octavo::media
