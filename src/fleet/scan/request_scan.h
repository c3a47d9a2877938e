// Reads what routing needs of a request from its body, once. The body itself is forwarded unchanged.
#pragma once

#include <span>
#include <string>

#include "fleet/view/route_request.h"
#include "http/message.h"

namespace octavo::fleet {

// Understands the bodies of OpenAI's and Anthropic's routes and of SGLang's /generate. A body that is none of
// them, or no JSON, makes a request without model and text: the endpoint it goes to says what is wrong with
// it.
// headers: to be read beside those that all policies read, in lower case.
RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers = {});

}  // namespace octavo::fleet
