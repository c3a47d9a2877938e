// Preprocessing of images for Gemma 4 (Gemma Team, 2026): any size, with the largest number of tokens
// within the budget. Gives the same pixels as Gemma4ImageProcessorPil of transformers
// (get_aspect_ratio_preserving_size).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Scales both sides by one factor, so that the image has the pixels of tokens_max tokens. Then rounds both
// sides down to multiples of rule.unit. If a side would become 0, it gets one unit, and the other side
// becomes as long as tokens_max permits. Returns an error if one side is more than 200 times the other.
Result<PartGrid> token_budget_grid(int width, int height, const TokenBudgetRule& rule);

}  // namespace octavo::media
