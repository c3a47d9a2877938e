// The fields of a response object that repeat the request.
#pragma once

#include <boost/json/object.hpp>

#include "serve/openai/responses_request.h"

namespace octavo::openai {

// Returns the response object of a request with this body: without id, created_at and status, and with an
// empty output.
boost::json::object response_fields(const boost::json::object& body, const ResponsesRequest& request);

}  // namespace octavo::openai
