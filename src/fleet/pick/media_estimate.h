// The part of a token-producer that says how many tokens images and videos count as.
#pragma once

#include "fleet/view/route_request.h"

namespace octavo::fleet {

class Parameters;

// `estimate` of llm-d's token-producer. Sizes of images and lengths of videos are ignored: its defaults are
// used. Errors go to the parameters.
void read_media_estimate(Parameters& estimate, MediaTokens& tokens);

}  // namespace octavo::fleet
