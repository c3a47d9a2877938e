// Reads how llm-d's token-producer estimates the tokens of images and videos.
#pragma once

#include "fleet/view/route_request.h"

namespace octavo::fleet {

class Parameters;

// Reads the parameter `estimate`. All images and videos count with llm-d's default size, because their real
// sizes are not read. Adds errors to `estimate`.
void read_media_estimate(Parameters& estimate, MediaTokens& tokens);

}  // namespace octavo::fleet
