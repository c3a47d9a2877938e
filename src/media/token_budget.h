// Images as Gemma 4 takes them (Gemma Team, 2026): of any size, with as many tokens as there may be. As
// Gemma4ImageProcessorPil of transformers does it (get_aspect_ratio_preserving_size).
#pragma once

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// The image shrinks or grows, both sides alike, to as many pixels as the tokens have, and both are cut to
// whole units; one that is left with none gets one, and the other side as many as fit. Error: one side is
// more than 200 times the other.
Result<PartGrid> token_budget_grid(int width, int height, const TokenBudgetRule& rule);

}  // namespace octavo::media
