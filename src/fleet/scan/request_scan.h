// Reads the fields of a request that routing needs. The body is forwarded unchanged.
#pragma once

#include <span>
#include <string>

#include "fleet/view/route_request.h"
#include "http/message.h"

namespace octavo::fleet {

// Reads bodies of OpenAI's and Anthropic's routes and of SGLang's /generate. Other bodies give a request
// without model and text, and the endpoint reports the error. headers: names of further headers to read, in
// lower case.
RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers = {});

}  // namespace octavo::fleet
