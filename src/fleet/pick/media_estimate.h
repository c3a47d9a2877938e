// Reads settings of a token-producer for images and videos.
#pragma once

#include "fleet/view/route_request.h"

namespace octavo::fleet {

class Parameters;

// Reads `estimate` of llm-d's token-producer. Real sizes of images and lengths of videos have no effect: all
// have llm-d's default size. Adds errors to the parameters.
void read_media_estimate(Parameters& estimate, MediaTokens& tokens);

}  // namespace octavo::fleet
