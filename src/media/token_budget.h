// Images for Gemma 4 (Gemma Team, 2026): any size, with as many tokens as the budget allows. Equals
// Gemma4ImageProcessorPil of transformers (get_aspect_ratio_preserving_size).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Scales both sides by one factor to the budget's number of pixels, then rounds them down to whole units. A
// side of 0 units becomes 1, and the other side as many units as fit. Error: one side is more than 200 times
// the other.
Result<PartGrid> token_budget_grid(int width, int height, const TokenBudgetRule& rule);

}  // namespace octavo::media
