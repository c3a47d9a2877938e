// The part of a token-producer that says how many tokens images and videos count as.
#pragma once

#include "fleet/view/route_request.h"

namespace octavo::fleet {

class Parameters;

// `estimate` of llm-d's token-producer. The sizes of images and the lengths of videos are not looked at: its
// defaults for them count. Mistakes are left in the parameters.
void read_media_estimate(Parameters& estimate, MediaTokens& tokens);

}  // namespace octavo::fleet
