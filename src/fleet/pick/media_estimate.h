// Reads the part of a token-producer that estimates the tokens of images and videos.
#pragma once

#include "fleet/view/route_request.h"

namespace octavo::fleet {

class Parameters;

// Reads `estimate` of llm-d's token-producer. Sizes of images and lengths of videos are ignored; llm-d's
// defaults are used instead. Errors are added to the parameters.
void read_media_estimate(Parameters& estimate, MediaTokens& tokens);

}  // namespace octavo::fleet
