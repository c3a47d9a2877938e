// Reads what routing needs of a request from its body, once. The body itself is forwarded unchanged.
#pragma once

#include <span>
#include <string>

#include "fleet/view/route_request.h"
#include "http/message.h"

namespace octavo::fleet {

// Reads the bodies of OpenAI's and Anthropic's routes and of SGLang's /generate. Any other body makes a
// request without model and text: the endpoint reports the mistake.
// headers: further header names to read, in lower case.
RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers = {});

}  // namespace octavo::fleet
