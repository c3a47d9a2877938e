// Reads the fields of a request that routing needs. The router and the picker call it once for each request,
// and forward the body unchanged.
#pragma once

#include <span>
#include <string>

#include "fleet/view/route_request.h"
#include "http/message.h"

namespace octavo::fleet {

// Reads bodies of OpenAI's and Anthropic's routes and of SGLang's /generate. Any other body gives a
// RouteRequest without model and text, and the endpoint reports the error. `headers` has the names, in
// lower case, of additional headers to read.
RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers = {});

}  // namespace octavo::fleet
