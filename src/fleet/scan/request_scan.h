// Reads the data that routing needs from a request's body. The body itself is forwarded unchanged.
#pragma once

#include <span>
#include <string>

#include "fleet/view/route_request.h"
#include "http/message.h"

namespace octavo::fleet {

// Reads bodies of OpenAI's and Anthropic's routes and of SGLang's /generate. Another body gives a request
// without model and text: the endpoint reports the error. headers: names of additional headers to read, in
// lower case.
RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers = {});

}  // namespace octavo::fleet
