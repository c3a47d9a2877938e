// A response of /v1/responses whose tools run on MCP servers: the model writes calls, the server runs them
// and continues the response with their results.
#pragma once

#include <boost/json/object.hpp>
#include <memory>

#include "base/error.h"
#include "http/exchange.h"
#include "serve/service.h"

namespace octavo::mcp {

// Answers the exchange, later. Each turn of the model is a request to routes::create_response. Errors name
// the field.
Result<> respond_with_servers(const std::shared_ptr<Service>& service,
                              const std::shared_ptr<http::Exchange>& exchange, boost::json::object body);

}  // namespace octavo::mcp
